--[[  lua/members.lua: brokers with all their members, living or not, and the leases of these, read at one moment.
  KEYS[1] events:meta  hash  holds
  KEYS[2] leases       zset  <cluster>:<addr> -> end (ms)
  ARGV    broker names; those nobody is registered under are left out of the answer
  Returns {now, broker, ...}; a broker is {name, its hash, member, ...}, a member {id, <cluster>:<addr>, end of its
  lease, the same with a hold, its hash}, a hash {field, value, ...}  ]]
--- @include "lease"
local ctx = { now = now_ms(), entries = {} }
open_leases(ctx)
local reply = { tostring(ctx.now) }
for _, name in ipairs(ARGV) do
  local attributes = redis.call("HGETALL", K.broker(name))
  local broker = { name, attributes }
  for a = 1, #attributes, 2 do
    local id, key = string.match(attributes[a], "^addr:(.*)$"), attributes[a + 1]
    if id then
      local lease = tonumber(redis.call("ZSCORE", KEYS[2], key) or 0)
      broker[#broker + 1] = {
        id, key, tostring(lease), tostring(end_of(ctx, lease)), redis.call("HGETALL", K.member(key)),
      }
    end
  end
  if #broker > 2 then reply[#reply + 1] = broker end
end
return reply
