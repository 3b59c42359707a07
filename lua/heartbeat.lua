--[[  lua/heartbeat.lua: heartbeats (904, 322) of living members, any number at once. Most writes of a steady cluster
  are this script, so it includes only what it needs: functions of an include are created at every call.
  KEYS[1] leases      zset    <cluster>:<addr> -> end (ms)
  and for each item:
  KEYS    alive:<m>   string  end of the lease, with TTL
  KEYS    member:<m>  hash    timeout, dv
  ARGV    member (<cluster>:<addr>)
  Returns for each {"unknown"}, {"lapsed"}: for reinstate_member.lua; {"renewed", timeout (ms), data version}  ]]
--- @include "countdown"
local call = redis.call
local leases = call("ZMSCORE", KEYS[1], unpack(ARGV))
local replies, ends = {}, {}
for i = 1, #ARGV do
  local lease = tonumber(leases[i] or nil)
  if not lease then
    replies[i] = { "unknown" }
  elseif now >= lease then
    replies[i] = { "lapsed" }
  else
    local member = call("HMGET", KEYS[2 * i + 1], "timeout", "dv")
    local till = lease_end(member[1])
    if till then
      ends[#ends + 1] = till
      ends[#ends + 1] = ARGV[i]
      if is_countdown_due(lease, member[1]) then call("SET", KEYS[2 * i], till, "PX", member[1]) end
      replies[i] = { "renewed", member[1], member[2] or "" }
    else
      replies[i] = { "lapsed" } -- damaged: that script knows what counts
    end
  end
end
if #ends > 0 then call("ZADD", KEYS[1], unpack(ends)) end
return replies
