--[[  lua/route.lua: everything a route is made of, read at one moment.
  KEYS[1] events:meta      hash  holds
  KEYS[2] route:<topic>    hash  broker name -> epoch,queue data
  KEYS[3] mapping:<topic>  hash  broker name -> epoch,mapping info
  KEYS[4] leases           zset  <cluster>:<addr> -> end (ms)
  KEYS[5] kv:ORDER_TOPIC_CONFIG  hash  topic -> order configuration
  ARGV[1] topic
  Returns {order configuration or "", broker, ...}; a broker is {name, queue data ("" when its epoch is over or
  nobody of it lives), cluster, acting, zone, mapping info or "", id, address, filters (JSON or ""), ...}  ]]
--- @include "lease"
local ctx = { now = now_ms(), entries = {} }
open_leases(ctx)
local reply = { redis.call("HGET", KEYS[5], ARGV[1]) or "" }
local flat = redis.call("HGETALL", KEYS[2])
for i = 1, #flat, 2 do
  local name = flat[i]
  local epoch, data = string.match(flat[i + 1], "^(%d+),(.*)$")
  local broker, attributes = { name, "", "", "0", "", "" }, redis.call("HGETALL", K.broker(name))
  local current = false
  for a = 1, #attributes, 2 do
    local field, value = attributes[a], attributes[a + 1]
    if field == "epoch" then current = value == epoch
    elseif field == "cluster" then broker[3] = value
    elseif field == "acting" then broker[4] = value
    elseif field == "zone" then broker[5] = value
    elseif string.sub(field, 1, 5) == "addr:" then
      local lease = redis.call("ZSCORE", KEYS[4], value)
      if lease and not lapsed(ctx, tonumber(lease)) then
        broker[#broker + 1] = string.sub(field, 6)
        broker[#broker + 1] = string.match(value, "^[^:]*:(.*)$")
        broker[#broker + 1] = redis.call("HGET", K.member(value), "filters") or ""
      end
    end
  end
  if current and #broker > 6 then
    broker[2] = data
    local of, info = string.match(redis.call("HGET", KEYS[3], name) or "", "^(%d+),(.*)$")
    broker[6] = of == epoch and info or ""
  end
  reply[#reply + 1] = broker
end
return reply
