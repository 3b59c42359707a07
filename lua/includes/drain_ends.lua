--- @include "drains"
--- @include "emit"
-- Entries of drains, and the drains whose time is over.
local DRAIN_ENDS_MAX = 50 -- a script; the rest are for the next one

local function emit_drain(ctx, cause, name, before, after, effective_ms)
  emit(ctx, "drain_changed", cause, {
    "broker", name, "cluster", redis.call("HGET", K.broker(name), "cluster"), "before", before, "after", after,
    "effective_ms", effective_ms or false, "topics", redis.call("HLEN", K.topics_of(name)),
  })
end

-- Emits the ends of drains that are over; store_drain_ends comes after the entries are appended.
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
