--[[  lua/tick.lua: a worker's beat, once a second: it is alive, leases can be renewed, and these have run out.
  KEYS[1] events:meta  hash  tick_ms, started_ms, holds
  KEYS[2] leases       zset  <cluster>:<addr> -> end (ms)
  KEYS[3] workers      zset  worker -> end of its lease (ms)
  ARGV[1] request as JSON: act, worker, lease (ms), horizon (ms), idle (ms after which the service counts as new)
  Returns {now, started, next end within the horizon or "", {overdue member, its end, ...}, event id}  ]]
--- @include "tables"
local r = cjson.decode(ARGV[1])
local ctx = new_ctx(r.act)
local started = redis.call("HGET", KEYS[1], "started_ms")
if not started or not ctx.tick or ctx.now - ctx.tick > r.idle then started = ctx.now end
local last = commit(ctx)
redis.call("HSET", KEYS[1], "tick_ms", ctx.now, "started_ms", started)
redis.call("ZADD", KEYS[3], ctx.now + r.lease, r.worker)
redis.call("ZREMRANGEBYSCORE", KEYS[3], "-inf", ctx.now - 60000)

local overdue, soonest = {}, ""
local flat = redis.call("ZRANGEBYSCORE", KEYS[2], "-inf", ctx.now + r.horizon, "WITHSCORES", "LIMIT", 0, 1000)
for i = 1, #flat, 2 do
  local ends = end_of(ctx, tonumber(flat[i + 1]))
  if ctx.now >= ends then
    overdue[#overdue + 1], overdue[#overdue + 2] = flat[i], tostring(ends)
  elseif ends <= ctx.now + r.horizon and (soonest == "" or ends < soonest) then
    soonest = ends
  end
end
return { tostring(ctx.now), tostring(started), tostring(soonest), overdue, last }
