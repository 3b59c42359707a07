--[[  lua/repair_leases.lua: compares members that have a lease with the brokers that they registered with. What the
  broker has lost of them comes back; a place that another member has is the other's.
  KEYS[1] events:meta  hash  incarnation, seq
  ARGV[1] request as JSON: origin, drop (1: leases of unknown members are removed)
  ARGV[2] members, at most 12
  Returns {{unknown member, ...}, {repaired: brokers, members, topics, mappings}}; brokers may know them
  (lua/repair_broker.lua), so they are removed by a later call  ]]
--- @include "repair"
local r = cjson.decode(ARGV[1])
local ctx = repair_ctx(r.origin)
local unknown, names, seen = {}, {}, {}

local function touch(name)
  if not seen[name] then
    seen[name], names[#names + 1] = true, cjson.encode(name)
    mended(ctx, "brokers")
  end
end

local function mend_place(member, place)
  -- Most are right, and the whole of a broker that has many members takes long to read.
  if redis.call("HGET", K.broker(place.name), "addr:" .. place.id) == member.key then return end
  local broker = broker_of(ctx, place.name)
  local holder = broker.addrs[place.id]
  if holder == member.key then return end
  if holder then
    member.fields[place.field], member.dirty = nil, true
    return
  end
  set_member(broker, place.id, member.key)
  broker.clusters[cluster_of(member.key)] = true
  if not has_attributes(broker) then
    mend_attributes(ctx, broker, cluster_of(member.key))
    forget_version(ctx, broker)
  end
  broker.gen, broker.dirty = broker.gen + 1, true
  touch(place.name)
end

-- The place of a member that has lost all of them.
local function last_place(member)
  local id, name = member.fields.id, member.fields.broker
  if id and name and broker_of(ctx, name).addrs[id] == member.key then
    member.fields["slot:" .. id .. ":" .. name], member.dirty = "1", true
  end
end

local function is_sound(field, value)
  if not (is_text(field) and is_text(value)) then return false end
  if field == "filters" then return is_json(value) end
  return string.sub(field, 1, 5) ~= "slot:" or string.find(field, "^slot:%-?%d+:") ~= nil
end

local function drop_unreadable(member)
  for field, value in pairs(member.fields) do
    if not is_sound(field, value) then member.fields[field], member.dirty = nil, true end
  end
end

for i = 2, #ARGV do
  local member = member_of(ctx, ARGV[i])
  if member.lease > 0 and not member.exists then
    unknown[#unknown + 1] = ARGV[i]
    if r.drop == 1 then member.gone, member.dirty = true, true end
  elseif member.lease > 0 then
    drop_unreadable(member)
    if #places_of(member) == 0 then last_place(member) end
    for _, place in ipairs(places_of(member)) do mend_place(member, place) end
    if #places_of(member) == 0 then member.gone, member.dirty = true, true end
  end
  if member.dirty then mended(ctx, "members") end
end
if ctx.counts.brokers + ctx.counts.members > 0 then
  emit_repaired(ctx, "brokers", names)
  commit(ctx)
end
return { unknown, counts_of(ctx) }
