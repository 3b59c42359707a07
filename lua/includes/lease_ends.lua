--- @include "clock"
--- @include "timeouts"
local now = now_ms()
local ends_of = {} -- time-out -> end: most members have the same

-- Returns when a lease ends that is renewed now; nil for a time-out that is none. A text, since Redis takes longer to write
-- a number, and does so in each command.
local function lease_end(timeout)
  local till = ends_of[timeout]
  if not till and is_timeout(timeout) then
    till = string.format("%.0f", now + timeout)
    ends_of[timeout] = till
  end
  return till
end
