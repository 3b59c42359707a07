--[[  lua/read_members.lua: reads brokers with all their members, living or not, and their leases, at one moment.
  KEYS[1] events:meta  hash  holds
  KEYS[2] leases       zset  <cluster>:<addr> -> end (ms)
  ARGV    broker names; those without a member are left out of the reply
  Returns {now, {broker, ...}, how many of the names were read, one at least}; a broker is {name, its hash, {member, ...}}, a member {id, <cluster>:<addr>, end of its
  lease, the same with a hold, its hash}, a hash {field, value, ...}  ]]
--- @include "lease"
local WORK_MAX = 1500 -- fields, of some 0.5 us each, beside those of one broker
local ctx = { now = now_ms(), entries = {} }
open_leases(ctx)
local brokers, work, done = {}, 0, 0
for i, name in ipairs(ARGV) do
  if i > 1 and work > WORK_MAX then break end
  done = i
  local attributes = redis.call("HGETALL", K.broker(name))
  local members = {}
  for a = 1, #attributes, 2 do
    local id, key = string.match(attributes[a], "^addr:(.*)$"), attributes[a + 1]
    if id then
      local lease = tonumber(redis.call("ZSCORE", KEYS[2], key) or 0)
      local fields = redis.call("HGETALL", K.member(key))
      members[#members + 1] = { id, key, tostring(lease), tostring(end_of(ctx, lease)), fields }
      work = work + 10 + #fields / 2
      for f = 2, #fields, 2 do work = work + #fields[f] / 500 end
    end
  end
  work = work + #attributes / 2
  if #members > 0 then brokers[#brokers + 1] = { name, attributes, members } end
end
return { tostring(ctx.now), brokers, done }
