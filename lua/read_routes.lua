--[[  lua/read_routes.lua: reads the rows of routes, any number of topics at one moment. A broker is read once,
  however many of the topics it has; the caller applies the epoch rule (registry/routes.py).
  KEYS[1] events:meta  hash  holds
  KEYS[2] leases       zset  <cluster>:<addr> -> end (ms)
  KEYS[3] kv:ORDER_TOPIC_CONFIG  hash  topic -> order configuration
  ARGV    topics
  Returns {brokers, extras, hashes, topic, ...}: as many of the topics as a script may take the time for, one at least.
  A topic is the number of its route hash, the first is 1; hashes are {broker name, epoch,data, ...}, each once however
  many topics have such a one, as in a cluster that has every topic on every broker. Brokers are those with a living
  member that these name:
  {name, epoch, cluster, acting, zone, drained, id, address, filters (JSON or ""), ...}. Few topics have an extra:
  {which of them (0 is the first), order configuration or "", broker name, epoch,mapping info, ...}  ]]
--- @include "drains"
--- @include "lease"
local WORK_MAX, TOPIC, BROKER, MEMBER = 3000, 10, 40, 40 -- of 0.13 us each, beside what the first topic takes
local call = redis.call
local ctx = { now = now_ms(), entries = {} }
open_leases(ctx)
local orders = call("HMGET", KEYS[3], unpack(ARGV))
local brokers, seen, work = {}, {}, 0
local any_drain = call("EXISTS", K.drains) == 1

local function read_broker(name)
  local attributes = call("HGETALL", K.broker(name))
  local broker = { name, "", "", "0", "", any_drain and drain_of(ctx, name) and "1" or "0" }
  for a = 1, #attributes, 2 do
    local field, value = attributes[a], attributes[a + 1]
    if field == "epoch" then broker[2] = value
    elseif field == "cluster" then broker[3] = value
    elseif field == "acting" then broker[4] = value
    elseif field == "zone" then broker[5] = value
    elseif string.sub(field, 1, 5) == "addr:" then
      work = work + MEMBER
      local lease = call("ZSCORE", KEYS[2], value)
      if lease and not lapsed(ctx, tonumber(lease)) then
        broker[#broker + 1] = string.sub(field, 6)
        broker[#broker + 1] = string.match(value, "^[^:]*:(.*)$")
        broker[#broker + 1] = call("HGET", K.member(value), "filters") or ""
      end
    end
  end
  if #broker > 6 then brokers[#brokers + 1] = broker end
end

-- Static topics are rare: one look tells whether any of these is one.
local mapping_keys = {}
for i, topic in ipairs(ARGV) do mapping_keys[i] = K.mapping(topic) end
local mapped, none = call("EXISTS", unpack(mapping_keys)) > 0, {}

-- What is in a hash is UTF-8, which has no byte 255.
local hashes, numbers = {}, {}

local function unseen(rows)
  local names = none
  for f = 1, #rows, 2 do
    if not seen[rows[f]] then
      if names == none then names = {} end
      names[#names + 1] = rows[f]
    end
  end
  return names
end

local extras = {}
local reply = { brokers, extras, hashes }
for i, topic in ipairs(ARGV) do
  local rows, mappings = call("HGETALL", K.route(topic)), mapped and call("HGETALL", mapping_keys[i]) or none
  local text = table.concat(rows, "\255")
  local number = numbers[text]
  local names = number and none or unseen(rows)
  work = work + TOPIC + #rows + #mappings + BROKER * #names
  if i > 1 and work > WORK_MAX then break end
  if not number then
    number = #hashes + 1
    hashes[number], numbers[text] = rows, number
    for _, name in ipairs(names) do
      seen[name] = true
      read_broker(name)
    end
  end
  if i == 1 then work = 0 end
  reply[i + 3] = number
  if orders[i] or #mappings > 0 then extras[#extras + 1] = { i - 1, orders[i] or "", unpack(mappings) } end
end
return reply
