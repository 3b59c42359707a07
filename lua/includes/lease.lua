--- @include "clock"
--- @include "emit"
-- Leases and holds: who counts as alive. A member is answered while now < end_of(its lease).
local TICK_LATE_MS = 5000 -- workers note each second that leases can be renewed; longer silence is an outage
local HOLD_MS = 60000     -- the longest heartbeat period a broker may have

local function hold_text(from, till)
  return string.format('{"from_ms":%d,"until_ms":%d}', from, till)
end

-- Reads the hold, and sets one first when the store was away: leases nobody could renew must not empty the routes.
local function open_leases(ctx)
  local meta = redis.call("HMGET", K.meta, "tick_ms", "hold_from_ms", "hold_until_ms")
  local tick = tonumber(meta[1] or nil)
  ctx.hold_from, ctx.hold_until = tonumber(meta[2] or nil), tonumber(meta[3] or nil)
  ctx.tick = tick
  if not tick or ctx.now - tick <= TICK_LATE_MS or redis.call("EXISTS", K.leases) == 0 then return end
  if ctx.hold_until and ctx.hold_until >= ctx.now + HOLD_MS then return end
  local before = ctx.hold_until and hold_text(ctx.hold_from, ctx.hold_until)
  if not ctx.hold_until or ctx.hold_until < tick then ctx.hold_from = tick end
  ctx.hold_until = ctx.now + HOLD_MS
  local after = hold_text(ctx.hold_from, ctx.hold_until)
  emit(ctx, "hold_changed", "outage", { "before", before or false, "after", after })
  ctx.hold_set = true
end

local function store_hold(ctx)
  if ctx.hold_set then
    redis.call("HSET", K.meta, "hold_from_ms", ctx.hold_from, "hold_until_ms", ctx.hold_until, "tick_ms", ctx.now)
  end
end

local function end_of(ctx, lease)
  if ctx.hold_from and lease >= ctx.hold_from and ctx.hold_until > lease then return ctx.hold_until end
  return lease
end

local function lapsed(ctx, lease)
  return ctx.now >= end_of(ctx, lease)
end
