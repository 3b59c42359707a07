--[[  lua/read_clusters.lua: reads brokers with a living member and the clusters that list them, at one moment.
  KEYS[1] events:meta  hash  holds
  KEYS[2] brokers      set   broker names
  KEYS[3] leases       zset  <cluster>:<addr> -> end (ms)
  ARGV    broker names (absent = all of them)
  Returns {how many of the names were read, one at least, broker, ...}, false when all of them are too many for one
          script; a broker is {name, cluster, acting, zone, {cluster that lists it, ...}, {id, address, ...}}  ]]
--- @include "lease"
--- @include "sound"
local BROKERS_MAX = 400
local WORK_MAX, MEMBER = 2000, 2 -- some us
if #ARGV == 0 and redis.call("SCARD", KEYS[2]) > BROKERS_MAX then return false end
local ctx = { now = now_ms(), entries = {} }
open_leases(ctx)
local all = #ARGV == 0
local names, work, reply = all and redis.call("SMEMBERS", KEYS[2]) or ARGV, 0, { 0 }
for i, name in ipairs(names) do
  if i > 1 and work > WORK_MAX then
    if all then return false end
    break
  end
  reply[1] = i
  local broker, listed, addresses = { name, "", "0", "" }, {}, {}
  local attributes, bytes = redis.call("HGETALL", K.broker(name)), #name
  for a = 1, #attributes, 2 do
    local field, value = attributes[a], attributes[a + 1]
    bytes = bytes + #field + #value
    if not is_text(field) or not is_text(value) then -- damage, which the repair drops
    elseif field == "cluster" then broker[2] = value
    elseif field == "acting" then broker[3] = value
    elseif field == "zone" then broker[4] = value
    elseif string.sub(field, 1, 3) == "in:" then listed[#listed + 1] = string.sub(field, 4)
    elseif string.sub(field, 1, 5) == "addr:" then
      local id, address = place_in(field, value)
      local lease = id and redis.call("ZSCORE", KEYS[3], value)
      if lease and not lapsed(ctx, tonumber(lease)) then
        addresses[#addresses + 1] = id
        addresses[#addresses + 1] = address
        work = work + MEMBER
      end
    end
  end
  work = work + #attributes / 4 + bytes / 500
  if #addresses > 0 then
    broker[5], broker[6] = listed, addresses
    reply[#reply + 1] = broker
  end
end
return reply
