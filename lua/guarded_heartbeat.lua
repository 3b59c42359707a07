--[[  lua/guarded_heartbeat.lua: lua/heartbeat.lua with the option ownershipGuard: a principal's member is renewed by that
  principal only.
  KEYS[1] leases      zset    <cluster>:<addr> -> end (ms)
  and for each item:
  KEYS    alive:<m>   string  end of the lease, with TTL
  KEYS    member:<m>  hash    timeout, dv, registrant, broker, id
  ARGV    member (<cluster>:<addr>)
  ARGV    registrant that the caller is
  Returns for each {"unknown"}, {"lapsed"}: for reinstate_member.lua; {"renewed", timeout (ms), data version}, of a
          principal's member {..., "principal"}; {"owned", broker name, id}  ]]
--- @include "countdown"
--- @include "registrant"
local call = redis.call
local members = {}
for i = 1, #ARGV, 2 do members[#members + 1] = ARGV[i] end
local leases = call("ZMSCORE", KEYS[1], unpack(members))
local ends = {}

local function renewed(i, lease)
  local member = call("HMGET", KEYS[2 * i + 1], "timeout", "dv", "registrant")
  local of_principal = is_principal(member[3])
  if of_principal and member[3] ~= ARGV[2 * i] then
    local place = call("HMGET", KEYS[2 * i + 1], "broker", "id")
    return { "owned", place[1] or "", place[2] or "" }
  end
  local till = lease_end(member[1])
  if not till then return { "lapsed" } end -- damaged: that script knows what counts
  ends[#ends + 1] = till
  ends[#ends + 1] = members[i]
  if is_countdown_due(lease, member[1]) then call("SET", KEYS[2 * i], till, "PX", member[1]) end
  return { "renewed", member[1], member[2] or "", of_principal and "principal" or nil }
end

local replies = {}
for i = 1, #members do
  local lease = tonumber(leases[i] or nil)
  if not lease then
    replies[i] = { "unknown" }
  elseif now >= lease then
    replies[i] = { "lapsed" }
  else
    replies[i] = renewed(i, lease)
  end
end
if #ends > 0 then call("ZADD", KEYS[1], unpack(ends)) end
return replies
