--[[  lua/read_clusters.lua: reads brokers with a living member and the clusters that list them, at one moment.
  KEYS[1] events:meta  hash  holds
  KEYS[2] brokers      set   broker names
  KEYS[3] leases       zset  <cluster>:<addr> -> end (ms)
  ARGV    broker names (absent = all of them)
  Returns {broker, ...}, false when all of them are too many for one script; a broker is {name, cluster, acting, zone, {cluster that lists it, ...}, {id, address, ...}}  ]]
--- @include "lease"
local BROKERS_MAX = 400
if #ARGV == 0 and redis.call("SCARD", KEYS[2]) > BROKERS_MAX then return false end
local ctx = { now = now_ms(), entries = {} }
open_leases(ctx)
local reply = {}
for _, name in ipairs(#ARGV > 0 and ARGV or redis.call("SMEMBERS", KEYS[2])) do
  local broker, listed, addresses = { name, "", "0", "" }, {}, {}
  local attributes = redis.call("HGETALL", K.broker(name))
  for a = 1, #attributes, 2 do
    local field, value = attributes[a], attributes[a + 1]
    if field == "cluster" then broker[2] = value
    elseif field == "acting" then broker[3] = value
    elseif field == "zone" then broker[4] = value
    elseif string.sub(field, 1, 3) == "in:" then listed[#listed + 1] = string.sub(field, 4)
    elseif string.sub(field, 1, 5) == "addr:" then
      local lease = redis.call("ZSCORE", KEYS[3], value)
      if lease and not lapsed(ctx, tonumber(lease)) then
        addresses[#addresses + 1] = string.sub(field, 6)
        addresses[#addresses + 1] = string.match(value, "^[^:]*:(.*)$")
      end
    end
  end
  if #addresses > 0 then
    broker[5], broker[6] = listed, addresses
    reply[#reply + 1] = broker
  end
end
return reply
