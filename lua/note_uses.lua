--[[  lua/note_uses.lua: notes when credentials proved their principals last (registry/access_uses.py)
  KEYS[1] access:used  hash  id of a credential -> Unix minute of its last use
  ARGV[1] how many credentials there may be; of more, a tenth of these goes that were used longest ago
  ARGV[2..] id of a credential, how many ms ago it was used, and so on
  Returns how many of them were noted  ]]
--- @include "clock"
local MINUTE_MS, AT_ONCE = 60000, 500
local now, most, noted = now_ms(), tonumber(ARGV[1]), 0
for i = 2, #ARGV, 2 do
  local minute = math.floor((now - ARGV[i + 1]) / MINUTE_MS)
  local before = tonumber(redis.call("HGET", KEYS[1], ARGV[i]) or "")
  -- a later minute than that of now: the clock went back
  if not (before and before >= minute and before <= now / MINUTE_MS) then
    redis.call("HSET", KEYS[1], ARGV[i], string.format("%.0f", minute))
    noted = noted + 1
  end
end
if redis.call("HLEN", KEYS[1]) > most then
  local flat, rows = redis.call("HGETALL", KEYS[1]), {}
  for i = 1, #flat, 2 do rows[#rows + 1] = { flat[i], tonumber(flat[i + 1]) or 0 } end
  table.sort(rows, function(one, other) return one[2] < other[2] end)
  local left, at = #rows - math.floor(most * 0.9), 1
  while at <= left do
    local fields = {}
    for i = at, math.min(at + AT_ONCE - 1, left) do fields[#fields + 1] = rows[i][1] end
    redis.call("HDEL", KEYS[1], unpack(fields))
    at = at + AT_ONCE
  end
end
return noted
