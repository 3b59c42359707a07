--- @include "emit"
-- Drains: an operator keeps producers off a broker name, whatever it registers. One with an end holds until then,
-- whether its end is recorded or not.

-- What is stored of a broker's drain, as JSON; false when none holds.
local function drain_of(ctx, name)
  local text = redis.call("HGET", K.drains, name)
  if not text then return false end
  local ends = redis.call("ZSCORE", K.drain_ends, name)
  return (not ends or ctx.now < tonumber(ends)) and text
end

local function emit_drain(ctx, cause, name, before, after, effective_ms)
  emit(ctx, "drain_changed", cause, {
    "broker", name, "cluster", redis.call("HGET", K.broker(name), "cluster"), "before", before, "after", after,
    "effective_ms", effective_ms or false, "topics", redis.call("HLEN", K.topics_of(name)),
  })
end

-- Tells of drains whose time is over, at most so many; store_drain_ends is for after the entries are appended.
local DRAIN_ENDS_MAX = 50
local function end_drains(ctx)
  local over = redis.call("ZRANGEBYSCORE", K.drain_ends, "-inf", ctx.now, "WITHSCORES", "LIMIT", 0, DRAIN_ENDS_MAX)
  ctx.drains_over = {}
  for i = 1, #over, 2 do
    emit_drain(ctx, "drain_end", over[i], redis.call("HGET", K.drains, over[i]), false, over[i + 1])
    ctx.drains_over[#ctx.drains_over + 1] = over[i]
  end
end

local function store_drain_ends(ctx)
  if #ctx.drains_over == 0 then return end
  redis.call("HDEL", K.drains, unpack(ctx.drains_over))
  redis.call("ZREM", K.drain_ends, unpack(ctx.drains_over))
end
