--- @include "clock"
--- @include "emit"
-- Leases and holds. A member is listed while now < end_of(its lease).
local TICK_LATE_MS = 5000 -- workers note each second that leases can be renewed (renew_ms); longer silence is an outage
local HOLD_MS = 60000     -- the longest heartbeat period a broker may have
local MASS_MS = 30000     -- lapses within so long are one mass expiry

-- A number of events:meta; what is none, because the hash was damaged, counts as absent.
local function whole(text)
  return text and #text < 16 and string.match(text, "^%-?%d+$") and tonumber(text) or nil
end

local function hold_json(ctx)
  return ctx.hold_until and string.format('{"from_ms":%.0f,"until_ms":%.0f}', ctx.hold_from, ctx.hold_until)
end

-- Leases that end from `from` on are kept until `till`; `more` are further fields of the hold.
local function change_hold(ctx, cause, from, till, more)
  local before = hold_json(ctx) or false
  ctx.hold_from, ctx.hold_until = from, till
  emit(ctx, "hold_changed", cause, { "before", before, "after", hold_json(ctx) })
  ctx.hold_fields = ctx.hold_fields or {}
  for field, value in pairs(more) do ctx.hold_fields[field] = value end
end

-- The store was away: leases that could not be renewed must not empty the routes.
local function hold_after_outage(ctx)
  if ctx.hold_until and ctx.hold_until >= ctx.now + HOLD_MS then return end
  local from = ctx.hold_from
  if not ctx.hold_until or ctx.hold_until < ctx.tick then from = ctx.tick end
  change_hold(ctx, "outage", from, ctx.now + HOLD_MS, { renew_ms = ctx.now, hold_members = 0 })
end

-- Many members lapsed at once, which points to the network. Those count that lapsed within MASS_MS, or
-- at the end of an outage's hold just now, but none that such a hold as this has kept already (count_from).
local function hold_mass_expiry(ctx, rule, count_from)
  if ctx.hold_until and ctx.now < ctx.hold_until then return end
  local from = ctx.now - MASS_MS
  if ctx.hold_until and ctx.hold_until > from then from = math.min(from, ctx.hold_from) end
  from = math.max(from, count_from)
  local pending = redis.call("ZCOUNT", K.leases, from, ctx.now)
  if pending == 0 then return end
  local recorded = redis.call("ZCOUNT", K.lapses, from, ctx.now)
  local longest, share, least = string.match(rule, "^(%d+),(%d+),(%d+)$")
  if not longest then return end
  local lapses, members = pending + recorded, redis.call("ZCARD", K.leases) + recorded
  if lapses < tonumber(least) or lapses * 100 < share * members then return end
  local till = ctx.now + longest
  change_hold(ctx, "mass_expiry", from, till, { count_from_ms = till + 1, hold_members = pending })
end

-- Reads the hold, and sets one first where leases ended that prove nothing.
local function open_leases(ctx)
  local meta = redis.call("HMGET", K.meta, "tick_ms", "hold_from_ms", "hold_until_ms", "hold_rule", "count_from_ms",
    "renew_ms")
  local ticked, renewed = whole(meta[1]), whole(meta[6]) -- workers before 0.2 write tick_ms only
  ctx.tick = (ticked or renewed) and math.max(ticked or 0, renewed or 0)
  ctx.hold_from, ctx.hold_until, ctx.rule = whole(meta[2]), whole(meta[3]), meta[4]
  if not (ctx.hold_from and ctx.hold_until) then ctx.hold_from, ctx.hold_until = nil, nil end
  if ctx.tick and ctx.now - ctx.tick > TICK_LATE_MS and redis.call("EXISTS", K.leases) == 1 then
    hold_after_outage(ctx)
  elseif ctx.rule then
    hold_mass_expiry(ctx, ctx.rule, whole(meta[5]) or 0)
  end
end

local function store_hold(ctx)
  if not ctx.hold_fields then return end
  local flat = { "hold_from_ms", ctx.hold_from, "hold_until_ms", ctx.hold_until }
  for field, value in pairs(ctx.hold_fields) do flat[#flat + 1], flat[#flat + 2] = field, value end
  redis.call("HSET", K.meta, unpack(flat))
end

local function end_of(ctx, lease)
  if ctx.hold_from and lease >= ctx.hold_from and ctx.hold_until > lease then return ctx.hold_until end
  return lease
end

local function lapsed(ctx, lease)
  return ctx.now >= end_of(ctx, lease)
end
