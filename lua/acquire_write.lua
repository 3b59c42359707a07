--[[  lua/acquire_write.lua: counts a write of a caller over HTTP, unless it is over its rate (registry/rate.py)
  KEYS[1] http_writes:<caller>  string  Unix ms at which its bucket will be empty; its TTL is the time until then
  ARGV[1] ms from one write to the next
  ARGV[2] how many writes at once
  Returns 1; 0 without a write when the caller is over its rate  ]]
--- @include "clock"
local now, interval = now_ms(), tonumber(ARGV[1])
local longest = (ARGV[2] + 0.5) * interval -- half a write more, for sums are rounded
local empty_at = tonumber(redis.call("GET", KEYS[1]) or now) or now
-- a later time than that of a full bucket: the clock went back, or the rate was raised
if not (empty_at >= now and empty_at <= now + longest) then empty_at = now end
local left = empty_at + interval - now
if left > longest then return 0 end
redis.call("SET", KEYS[1], string.format("%.6f", now + left), "PX", math.ceil(left))
return 1
