--[[  lua/set_drain.lua: sets, replaces or ends the drain of a broker name.
  KEYS[1] events:meta    hash  incarnation, seq
  KEYS[2] drains         hash  broker name -> drain as JSON
  KEYS[3] drains:ends    zset  broker name -> its end (ms)
  ARGV[1] request as JSON: origin, name, after (drain as JSON, absent = none), ends (ms, absent = it does not end),
          limits
  Returns {event id, topics of the broker}; {"unknown"} when no member is registered under the name and no drain is to
          be replaced or ended; {"full", option} so many names are drained; {"past"} when it would have ended already  ]]
--- @include "clock"
--- @include "drain_ends"
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
local before = redis.call("HGET", KEYS[2], r.name)
if r.ends and r.ends <= ctx.now then return { "past" } end
if not before and redis.call("EXISTS", K.broker(r.name)) == 0 then return { "unknown" } end
if r.after and not before and redis.call("HLEN", KEYS[2]) >= r.limits.maxBrokers then
  return { "full", "maxBrokers" }
end
end_drains(ctx)
local drained = drain_of(ctx, r.name)
local after = r.after or false
if drained ~= after then emit_drain(ctx, after and "drain" or "undrain", r.name, drained, after) end
local last = append(ctx)
store_drain_ends(ctx)
if after then
  redis.call("HSET", KEYS[2], r.name, after)
else
  redis.call("HDEL", KEYS[2], r.name)
end
if r.ends then
  redis.call("ZADD", KEYS[3], r.ends, r.name)
else
  redis.call("ZREM", KEYS[3], r.name)
end
return { last, redis.call("HLEN", K.topics_of(r.name)) }
