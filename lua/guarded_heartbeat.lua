--[[  lua/guarded_heartbeat.lua: lua/heartbeat.lua with the option ownershipGuard: a principal's member is renewed by that
  principal only.
  KEYS[1] leases      zset    <cluster>:<addr> -> end (ms)
  and for each item:
  KEYS    member:<m>  hash    timeout, dv, registrant, mirrored, broker, id
  ARGV    member (<cluster>:<addr>)
  ARGV    registrant that the caller is
  and after all items, for each:
  ARGV    reply expected: "<timeout> <data version>", of a principal's member also " principal"; "" for none
  Returns {i, reply, ...} of the items whose reply is another: {"unknown"}, {"lapsed"}: for reinstate_member.lua;
          {"renewed", timeout (ms), data version}, of a principal's member {..., "principal"}; {"owned", broker name, id}  ]]
--- @include "renewals"
--- @include "registrant"
local n = #ARGV / 3
local members = {}
for i = 1, n do members[i] = ARGV[2 * i - 1] end

local function judge(i)
  local member = call("HMGET", KEYS[i + 1], "timeout", "dv", "registrant", "mirrored")
  if member[4] then return nil, "unknown" end -- the broker has not registered
  local of_principal = is_principal(member[3])
  if of_principal and member[3] ~= ARGV[2 * i] then
    local place = call("HMGET", KEYS[i + 1], "broker", "id")
    return nil, "owned", place[1] or "", place[2] or ""
  end
  if not lease_end(member[1]) then return nil, "lapsed" end -- damaged: that script knows what counts
  local version = member[2] or ""
  if of_principal then return member[1], version .. " principal", version, "principal" end
  return member[1], version, version
end

return (renew(members, n, judge))
