-- The clock of all leases and entries is Redis's own, in Unix ms.
local function now_ms()
  local time = redis.call("TIME")
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
