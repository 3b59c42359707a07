--[[  lua/read_routes.lua: reads the rows of routes, any number of topics at one moment. A broker is read once,
  however many of the topics it has; the caller applies the epoch rule (registry/routes.py).
  KEYS[1] events:meta  hash  holds
  KEYS[2] kv:ORDER_TOPIC_CONFIG  hash  topic -> order configuration
  ARGV    topics
  Returns {brokers, extras, hashes, topic, ...}: as many of the topics as a script may take the time for, one at least.
  A topic is the number of its route hash, the first is 1; hashes are {broker name, epoch,data, ...}, each once however
  many topics have such a one, as in a cluster that has every topic on every broker. Brokers are those with a living
  member that these name:
  {name, epoch, cluster, acting, zone, drained, id, address, filters (JSON or ""), ...}. Few topics have an extra:
  {which of them (0 is the first), order configuration or "", broker name, epoch,mapping info, ...}. Extras of what there
  was no time for, of the only topic but for the first: -1 with names of brokers, which lua/read_brokers.lua reads; -2 the
  mapping info; -3 its route, then no broker is read either  ]]
--- @include "route_brokers"
local WORK_MAX, TOPIC = 3000, 10 -- beside what the first topic takes
local FIRST_MAX, ROW = 22000, 4 -- of the first topic and its rows
local UNIT_BYTES = 50 -- that a unit of work copies
local MAPPED_MAX = 32 -- mapping info of a topic
local SHORT, LONG_BYTES = 128, 200000 -- rows of a route that is never too long; what a longer one takes in memory
local call = redis.call
local ctx = { now = now_ms(), entries = {} }
open_leases(ctx)
local orders = reply_or({}, "HMGET", KEYS[2], unpack(ARGV))
local brokers, seen, work = {}, {}, 0
local none = {}

-- One look tells whether a route may be long: none has more rows than there are brokers, those apart that have left and
-- are being cleaned up.
local many = call("SCARD", K.brokers) > SHORT

-- The rows of a route, false when they are too many.
local function rows_of(key, first)
  if (many or first) and call("HLEN", key) > SHORT and call("MEMORY", "USAGE", key, "SAMPLES", 0) > LONG_BYTES then
    return false
  end
  return call("HGETALL", key)
end

-- Static topics are rare: one look tells whether any of these is one.
local mapping_keys = {}
for i, topic in ipairs(ARGV) do mapping_keys[i] = K.mapping(topic) end
local mapped = call("EXISTS", unpack(mapping_keys)) > 0

-- The mapping info of topic i and the work, false when it is too much.
local function infos_of(i)
  if not mapped then return none, 0 end
  if call("HLEN", mapping_keys[i]) > MAPPED_MAX then return false, 0 end
  local mappings, bytes = call("HGETALL", mapping_keys[i]), 0
  for m = 2, #mappings, 2 do bytes = bytes + #mappings[m] end
  return mappings, #mappings + bytes / UNIT_BYTES
end

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
local reply, left = { brokers, extras, hashes }, none
for i, topic in ipairs(ARGV) do
  local stored, mappings, copied = rows_of(K.route(topic), i == 1), infos_of(i)
  if i > 1 and not (stored and mappings) then break end
  local rows = stored or none
  local text = table.concat(rows, "\255")
  local number = numbers[text]
  local names = number and none or unseen(rows)
  work = work + TOPIC + #rows + copied + #text / UNIT_BYTES
  if i > 1 and work + BROKER * #names > WORK_MAX then break end
  if not number then
    number = #hashes + 1
    hashes[number], numbers[text] = rows, number
    for _, name in ipairs(names) do seen[name] = true end
    local took
    left, took = read_brokers(ctx, names, brokers, FIRST_MAX - ROW * #rows)
    work = work + took
  end
  reply[i + 3] = number
  if orders[i] or mappings and #mappings > 0 then
    local extra = { i - 1, orders[i] or "" }
    for m = 1, #(mappings or none) do extra[m + 2] = mappings[m] end
    extras[#extras + 1] = extra
  end
  if #left > 0 then
    table.insert(left, 1, -1)
    extras[#extras + 1] = left
  end
  if not mappings then extras[#extras + 1] = { -2 } end
  if not stored then extras[#extras + 1] = { -3 } end
  if #left > 0 or not (stored and mappings) then break end
  if i == 1 then work = 0 end
end
return reply
