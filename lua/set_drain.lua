--[[  lua/set_drain.lua: sets, replaces or ends the drain of a broker name.
  KEYS[1] events:meta    hash  incarnation, seq
  KEYS[2] drains         hash  broker name -> drain as JSON
  KEYS[3] drains:ends    zset  broker name -> its end (ms)
  ARGV[1] request as JSON: origin, name, after (drain as JSON without since_ms, absent = none), ends (ms, absent = it
          does not end), limits
  Returns {event id, topics of the broker}; {"unknown"} when no member is registered under the name and no drain is to
          be replaced or ended; {"full", option} so many names are drained; {"past"} when it would have ended already  ]]
--- @include "clock"
--- @include "drain_ends"

-- When a drain was set is the last member of its JSON; 0.1 stored none.
local function with_since(drain, since_ms)
  return string.format('%s,"since_ms":%.0f}', string.sub(drain, 1, -2), since_ms)
end

local function without_since(drain) return (string.gsub(drain, ',"since_ms":%d+}$', "}")) end

local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
local before = redis.call("HGET", KEYS[2], r.name)
if r.ends and r.ends <= ctx.now then return { "past" } end
if not before and redis.call("EXISTS", K.broker(r.name)) == 0 then return { "unknown" } end
if r.after and not before and redis.call("HLEN", KEYS[2]) >= r.limits.maxBrokers then
  return { "full", "maxBrokers" }
end
local drained = drain_of(ctx, r.name)
if before and not drained then
  emit_drain(ctx, "drain_end", r.name, before, false, redis.call("ZSCORE", KEYS[3], r.name))
end
local after = r.after and with_since(r.after, ctx.now) or false
if r.after and drained and without_since(drained) == r.after then after = drained end
if drained ~= after then emit_drain(ctx, after and "drain" or "undrain", r.name, drained, after) end
local last = append(ctx)
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
