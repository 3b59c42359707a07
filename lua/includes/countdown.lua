--- @include "lease_ends"

-- Whether alive:<m> is to be written with a lease that is renewed now: brokers with acting masters send heartbeats each
-- second, and only people read it.
local function is_countdown_due(lease, timeout)
  local part = countdown_part(timeout)
  return math.floor((lease - timeout) / part) ~= math.floor(now / part)
end
