--- @include "lease"
-- The clock of Redis may go back: its machine is set, or a replica whose clock is behind becomes the master. What was
-- noted by the clock before keeps its distance from now. Walks over the tables cut leases (lua/repair_broker.lua).
local BACK_MS = 1000 -- less is within what leases forgive

local function cut_worker_leases(ctx, longest)
  local till = ctx.now + longest
  for _, worker in ipairs(redis.call("ZRANGEBYSCORE", K.workers, "(" .. string.format("%d", till), "+inf")) do
    redis.call("ZADD", K.workers, till, worker)
  end
end

-- Returns by how many ms the clock went back since the last tick, 0 if it did not.
local function clock_back(ctx)
  local back = ctx.tick and ctx.tick - ctx.now or 0
  if back < BACK_MS then return 0 end
  if ctx.hold_until and ctx.hold_until > ctx.now then
    local from = whole(redis.call("HGET", K.meta, "count_from_ms")) or 0
    change_hold(ctx, "clock_back", ctx.hold_from - back, ctx.hold_until - back, {
      count_from_ms = math.max(from - back, 0),
    })
  end
  return back
end

-- After the entries were appended.
local function store_clock_back(ctx, back, follow, longest)
  if back == 0 then return end
  redis.call("HSET", K.meta, "back_ms", back, "back_at_ms", ctx.now)
  if follow and follow > ctx.now then redis.call("HSET", K.meta, "follow_ms", follow - back) end
  cut_worker_leases(ctx, longest)
end
