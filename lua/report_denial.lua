--[[  lua/report_denial.lua: reports that a known caller was refused, once a minute for each actor and operation. What
  comes between is counted, and reported once its minute is over: by whichever process asks then.
  KEYS[1] events:meta                        hash    incarnation, seq
  KEYS[2] access_denied:<actor>:<operation>  string  "<end of the minute (ms)> <refusals not reported>" (short TTL)
  ARGV[1] request as JSON: origin, operation, class, count: how many refusals were not reported yet
  Returns 0 when all of them are reported, else in how many ms the rest may be  ]]
--- @include "clock"
--- @include "emit"
local EVERY_MS, KEPT_MS = 60000, 600000
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
local ends, left = string.match(redis.call("GET", KEYS[2]) or "", "^(%d+) (%d+)$")
ends, left = number_of(ends, 0), number_of(left, 0) + r.count
if left == 0 then return 0 end
local wait = ends - ctx.now
if wait > 0 and wait <= EVERY_MS then -- a later end: the clock went back
  redis.call("SET", KEYS[2], string.format("%.0f %.0f", ends, left), "PX", KEPT_MS)
  return wait
end
emit(ctx, "access_denied", "denied", {
  "operation", r.operation, "class", r.class, "count", string.format("%.0f", left),
})
append(ctx)
redis.call("SET", KEYS[2], string.format("%.0f 0", ctx.now + EVERY_MS), "PX", KEPT_MS)
return 0
