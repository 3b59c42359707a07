--[[  lua/tick.lua: renews a worker's lease, each second, notes that leases can be renewed, and returns overdue
  members. Drains whose time is over end here, and so does the hold of a mass expiry.
  KEYS[1] events:meta  hash  renew_ms, tick_ms, follow_ms, started_ms, back_ms, back_at_ms, holds, hold_rule,
          behind_ms, behind_at_ms
  KEYS[2] leases       zset  <cluster>:<addr> -> end (ms)
  KEYS[3] workers      zset  worker -> end of its lease (ms)
  ARGV[1] request as JSON: origin, worker, lease (ms), horizon (ms), most (leases to look at),
          idle (ms after which the service counts as new), follows: whether the worker follows the stream,
          behind: by how much what it has applied of the stream is behind its end (ms; workers before 0.2 do not say),
          rule of mass expiries: "<longest hold (ms)>,<share (percent)>,<least members>", absent = no holds
  Returns {now, started, next end (of a lease or a drain) within the horizon or "", {overdue member, its end, ...},
          event id, by how much the clock went back since the last tick (ms)}  ]]
--- @include "clock_back"
--- @include "drain_ends"
--- @include "end_hold"
--- @include "tables"
local BEHIND_FOR_MS = 3000 -- the worst of all workers is noted; the same worker says so again each second
local r = cjson.decode(ARGV[1])
local ctx = new_ctx(r.origin)
local meta = redis.call("HMGET", KEYS[1], "started_ms", "hold_members", "follow_ms", "behind_ms", "behind_at_ms")
local started, members, follow, back = whole(meta[1]), whole(meta[2]) or 0, whole(meta[3]), clock_back(ctx)
if not started or not ctx.tick or ctx.now - ctx.tick > r.idle then started = ctx.now end
started = started - back

-- At first, so that no tick that fails on its way is taken for silence, of which a hold would be made again and again.
-- A hold that is due comes before it.
local last = ctx.hold_fields and commit(ctx) or ""
redis.call("HSET", KEYS[1], "renew_ms", ctx.now)

if r.rule ~= (ctx.rule or nil) then
  if r.rule then redis.call("HSET", KEYS[1], "hold_rule", r.rule) else redis.call("HDEL", KEYS[1], "hold_rule") end
end

-- A mass expiry is over when of those that were missing at once nine in ten are back, or have gone.
if members > 0 and not ctx.hold_fields and ctx.hold_until and ctx.now < ctx.hold_until then
  local missing = redis.call("ZCOUNT", KEYS[2], ctx.hold_from, ctx.now)
  if missing > members then
    redis.call("HSET", KEYS[1], "hold_members", missing)
  elseif missing * 10 <= members then
    end_hold(ctx)
  end
end

end_drains(ctx)
local later = commit(ctx)
if later ~= "" then last = later end
store_drain_ends(ctx)
store_clock_back(ctx, back, follow, r.lease)
redis.call("ZADD", KEYS[3], ctx.now + r.lease, r.worker)
redis.call("ZREMRANGEBYSCORE", KEYS[3], "-inf", ctx.now - 60000)

local overdue, soonest = {}, ""
local flat = redis.call("ZRANGEBYSCORE", KEYS[2], "-inf", ctx.now + r.horizon, "WITHSCORES", "LIMIT", 0, r.most)
for i = 1, #flat, 2 do
  local ends = end_of(ctx, tonumber(flat[i + 1]))
  if ctx.now >= ends then
    overdue[#overdue + 1], overdue[#overdue + 2] = flat[i], tostring(ends)
  elseif ends <= ctx.now + r.horizon and (soonest == "" or ends < soonest) then
    soonest = ends
  end
end
local drain = redis.call("ZRANGEBYSCORE", K.drain_ends, "-inf", ctx.now + r.horizon, "WITHSCORES", "LIMIT", 0, 1)
if drain[2] and (soonest == "" or tonumber(drain[2]) < soonest) then soonest = drain[2] end

-- At last, so that a clock that is not late means that all this could be done.
redis.call("HSET", KEYS[1], "tick_ms", ctx.now, "started_ms", started)
-- A worker that starts has as long to follow the stream as one that follows no more.
if r.follows or not follow then redis.call("HSET", KEYS[1], "follow_ms", ctx.now) end
local behind, behind_at = whole(meta[4]), whole(meta[5])
local is_over = not behind or not behind_at or math.abs(ctx.now - behind_at) > BEHIND_FOR_MS
if r.behind and (is_over or r.behind >= behind) then
  redis.call("HSET", KEYS[1], "behind_ms", r.behind, "behind_at_ms", ctx.now)
end
return { tostring(ctx.now), string.format("%.0f", started), tostring(soonest), overdue, last, tostring(back) }
