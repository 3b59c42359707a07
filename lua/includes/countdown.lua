-- Whether alive:<m> is to be written with a lease that is renewed now: once in each eighth of the time-out. Brokers with
-- acting masters send heartbeats each second, and only people read it: it ends at most an eighth before the lease.
local function is_countdown_due(lease, timeout)
  local eighth = timeout / 8
  return math.floor((lease - timeout) / eighth) ~= math.floor(now / eighth)
end
