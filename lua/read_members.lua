--[[  lua/read_members.lua: reads brokers with all their members, living or not, and their leases, at one moment.
  KEYS[1] events:meta  hash  holds
  KEYS[2] leases       zset  <cluster>:<addr> -> end (ms)
  ARGV[1] of the first broker only members with larger ids are read ("" = all)
  ARGV[2] broker names; those without a member are left out of the reply
  Returns {now, {broker, ...}, how many of the names were read, one at least, id up to which the last of them was read ("" =
  whole)}; a broker is {name, its hash, {member, ...}}, a member {id, <cluster>:<addr>, end of its lease, the same with a
  hold, its hash without places}, a hash {field, value, ...}  ]]
--- @include "lease"
--- @include "sound"
local WORK_MAX = 1500 -- of some 0.5 us each, beside one broker
local MEMBERS_MAX = 5000 -- the same, beside one member
local MEMBER, UNIT_BYTES = 10, 150
local ctx = { now = now_ms(), entries = {} }
open_leases(ctx)
local after = tonumber(ARGV[1])
local brokers, work, done, read_to = {}, 0, 0, ""

local function read_member(id, key)
  local lease, stored = tonumber(redis.call("ZSCORE", KEYS[2], key) or 0), redis.call("HGETALL", K.member(key))
  local fields, bytes = {}, 0
  for f = 1, #stored, 2 do
    bytes = bytes + #stored[f] + #stored[f + 1]
    if string.sub(stored[f], 1, 5) ~= "slot:" then
      fields[#fields + 1] = stored[f]
      fields[#fields + 1] = stored[f + 1]
    end
  end
  work = work + MEMBER + #stored / 2 + bytes / UNIT_BYTES
  return { id, key, tostring(lease), tostring(end_of(ctx, lease)), fields }
end

local function read_broker(name, attributes)
  local places, members = {}, {}
  for a = 1, #attributes, 2 do
    local id = place_in(attributes[a], attributes[a + 1])
    if id and not (after and tonumber(id) <= after) then places[#places + 1] = { tonumber(id), id, attributes[a + 1] } end
  end
  table.sort(places, function(one, other) return one[1] < other[1] end)
  for _, place in ipairs(places) do
    if #members > 0 and work > MEMBERS_MAX then
      read_to = members[#members][1]
      break
    end
    members[#members + 1] = read_member(place[2], place[3])
  end
  if #members > 0 then brokers[#brokers + 1] = { name, attributes, members } end
end

for i = 2, #ARGV do
  if i > 2 and work > WORK_MAX then break end
  done = done + 1
  local attributes = redis.call("HGETALL", K.broker(ARGV[i]))
  work = work + #attributes / 2
  read_broker(ARGV[i], attributes)
  if read_to ~= "" then break end
  after = nil
end
return { tostring(ctx.now), brokers, done, read_to }
