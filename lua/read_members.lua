--[[  lua/read_members.lua: reads brokers with all their members, living or not, and their leases, at one moment.
  KEYS[1] events:meta  hash  holds
  KEYS[2] leases       zset  <cluster>:<addr> -> end (ms)
  ARGV    broker names; those without a member are left out of the reply
  Returns {now, {broker, ...}}; a broker is {name, its hash, {member, ...}}, a member {id, <cluster>:<addr>, end of its
  lease, the same with a hold, its hash}, a hash {field, value, ...}  ]]
--- @include "lease"
local ctx = { now = now_ms(), entries = {} }
open_leases(ctx)
local brokers = {}
for _, name in ipairs(ARGV) do
  local attributes = redis.call("HGETALL", K.broker(name))
  local members = {}
  for a = 1, #attributes, 2 do
    local id, key = string.match(attributes[a], "^addr:(.*)$"), attributes[a + 1]
    if id then
      local lease = tonumber(redis.call("ZSCORE", KEYS[2], key) or 0)
      members[#members + 1] = {
        id, key, tostring(lease), tostring(end_of(ctx, lease)), redis.call("HGETALL", K.member(key)),
      }
    end
  end
  if #members > 0 then brokers[#brokers + 1] = { name, attributes, members } end
end
return { tostring(ctx.now), brokers }
