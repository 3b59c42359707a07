--[[  lua/heartbeat.lua: heartbeats (904, 322) of living members, any number at once. Most writes of a steady cluster
  are this script, so it includes only what it needs: functions of an include are created at every call.
  KEYS[1] leases      zset    <cluster>:<addr> -> end (ms)
  and for each item:
  KEYS    member:<m>  hash    timeout, dv, mirrored
  ARGV    member (<cluster>:<addr>)
  and after all items, for each:
  ARGV    reply expected: "<timeout> <data version>"; "" for none
  Returns {i, reply, ...} of the items whose reply is another: {"unknown"}, {"lapsed"}: for reinstate_member.lua;
          {"renewed", timeout (ms), data version}  ]]
--- @include "renewals"
local function judge(i)
  local member = call("HMGET", KEYS[i + 1], "timeout", "dv", "mirrored")
  if member[3] then return nil, "unknown" end -- the broker has not registered
  if not lease_end(member[1]) then return nil, "lapsed" end -- damaged: that script knows what counts
  return member[1], member[2] or "", member[2] or ""
end

return (renew(ARGV, #ARGV / 2, judge))
