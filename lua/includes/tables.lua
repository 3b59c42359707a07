--- @include "lease"
--- @include "many"
--- @include "damage"
--- @include "sound"
-- Brokers and members as values: loaded once, changed in memory while the script decides, written back by `commit`.
local function new_ctx(origin)
  local ctx = { now = now_ms(), origin = origin, entries = {}, brokers = {}, members = {}, work = 0 }
  open_leases(ctx)
  return ctx
end

local function pairs_of(flat)
  local out = {}
  for i = 1, #flat, 2 do out[flat[i]] = flat[i + 1] end
  return out
end

local TIMEOUT_MS, LONGEST_MS = "120000", 2 * 86400000 -- twice the longest time-out: the clock may go back
local TEXTS = { epoch = true, cluster = true, acting = true, zone = true, network = true }
local NUMBERS = { gen = true, topics = true, mappings = true }

-- {name, exists, damaged (it has fields that are none, which the next write drops), epoch, gen, cluster, acting, zone,
-- network (that it was first registered from), topics, mappings (how many rows of each there should be),
-- addrs = {id -> member key}, clusters = {name -> true}}
local function broker_of(ctx, name)
  local broker = ctx.brokers[name]
  if broker then return broker end
  broker = { name = name, addrs = {}, clusters = {}, listed = {}, exists = false, gen = 0 }
  local fields = 0
  for field, value in pairs(pairs_of(redis.call("HGETALL", K.broker(name)))) do
    broker.exists, fields = true, fields + 1
    local kind, rest = string.match(field, "^(%a+):(.*)$")
    if not is_text(field) or not is_text(value) then
      broker.damaged = true
    elseif kind == "in" then
      broker.clusters[rest], broker.listed[rest] = true, true
    elseif place_in(field, value) then
      broker.addrs[rest] = value
    elseif TEXTS[field] then
      broker[field] = value
    elseif NUMBERS[field] and is_whole(value) then
      broker[field] = tonumber(value)
    else
      broker.damaged = true
    end
  end
  ctx.brokers[name] = broker
  ctx.work = (ctx.work or 0) + 2 * fields
  return broker
end

-- Until they are repaired (lua/repair_broker.lua), a time-out and a beginning that are none count as the usual one and now.
-- Without its signature the member's next registration is compared whole, and sets the time-out that it asks for.
local function mend_numbers(ctx, member)
  local fields = member.fields
  member.damaged = not (is_timeout(fields.timeout) and is_whole(fields.since))
  if not is_timeout(fields.timeout) then fields.timeout, fields.sig = TIMEOUT_MS, nil end
  if not is_whole(fields.since) then fields.since = tostring(ctx.now) end
end

-- The end of a lease; 0 without one. A score that is no such time, which is damage, counts as the nearest one.
local function stored_lease(ctx, key)
  local score = tonumber(redis.call("ZSCORE", K.leases, key) or 0)
  return math.floor(math.min(math.max(score, 0), ctx.now + LONGEST_MS))
end

-- {key, exists, damaged (a number of it was none), lease, fields}; fields hold broker, id, dv, ha, filters, timeout,
-- since, sig, at, applied, mirrored (lua/includes/mirrored.lua), slot:<id>:<name> for each place it registered, owner:<worker>/<connection> for each
-- connection it came over with the host that it came from
local function member_of(ctx, key)
  local member = ctx.members[key]
  if member then return member end
  local fields = pairs_of(redis.call("HGETALL", K.member(key)))
  member = { key = key, fields = fields, exists = next(fields) ~= nil, lease = stored_lease(ctx, key) }
  if member.exists then mend_numbers(ctx, member) end
  ctx.members[key] = member
  return member
end

local function lease_of(ctx, key)
  local member = ctx.members[key]
  return member and member.lease or stored_lease(ctx, key)
end

local function address_of(key) return string.match(key, "^[^:]*:(.*)$") end

local function cluster_of(key)
  local encoded = string.match(key, "^([^:]*):")
  return (string.gsub(string.gsub(encoded, "%%3A", ":"), "%%25", "%%"))
end

local function sorted_ids(addrs)
  local ids = {}
  for id in pairs(addrs) do ids[#ids + 1] = id end
  table.sort(ids, function(a, b) return tonumber(a) < tonumber(b) end)
  return ids
end

local function set_member(broker, id, key)
  broker.addrs[id], broker.order = key, nil
end

-- Each removal from a group names the members that are left: ids are sorted and encoded once a script.
local function addrs_json(broker)
  broker.order = broker.order or sorted_ids(broker.addrs)
  broker.encoded = broker.encoded or {}
  local parts = {}
  for _, id in ipairs(broker.order) do
    local key = broker.addrs[id]
    if key then
      local encoded = broker.encoded[id]
      if not encoded or encoded.key ~= key then
        encoded = { key = key, text = '"' .. id .. '":' .. cjson.encode(address_of(key)) }
        broker.encoded[id] = encoded
      end
      parts[#parts + 1] = encoded.text
    end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function places_of(member)
  local places = {}
  for field in pairs(member.fields) do
    local id, name = string.match(field, "^slot:(%-?%d+):(.*)$")
    if id then places[#places + 1] = { field = field, id = id, name = name } end
  end
  table.sort(places, function(a, b) return a.field < b.field end)
  return places
end

-- Notes a clean-up that takes scripts of its own. `value` is of this script only: after the
-- clean-up the note is deleted if it is still the one that was read.
local function defer(ctx, kind, name, value)
  overwrite("HSET", K.owed, kind .. ":" .. name, value)
  ctx.deferred = ctx.deferred or {}
  ctx.deferred[name] = true
end

-- The broker names with a clean-up that this script deferred.
local function deferred_names(ctx)
  local names = {}
  for name in pairs(ctx.deferred or {}) do names[#names + 1] = name end
  return names
end

local function write_broker(ctx, broker, event_id)
  local key = K.broker(broker.name)
  local gone = next(broker.addrs) == nil
  if gone then broker.clusters = {} end
  for cluster in pairs(broker.listed) do
    if not broker.clusters[cluster] then
      overwrite("SREM", K.cluster(cluster), broker.name)
      if redis.call("EXISTS", K.cluster(cluster)) == 0 then overwrite("SREM", K.clusters, cluster) end
    end
  end
  redis.call("DEL", key)
  if gone then
    overwrite("SREM", K.brokers, broker.name)
    defer(ctx, "clean", broker.name, event_id)
    return
  end
  local flat = { "epoch", broker.epoch, "gen", broker.gen, "cluster", broker.cluster, "acting", broker.acting }
  for _, field in ipairs({ "zone", "topics", "mappings", "network" }) do
    if broker[field] then flat[#flat + 1], flat[#flat + 2] = field, broker[field] end
  end
  for cluster in pairs(broker.clusters) do
    flat[#flat + 1], flat[#flat + 2] = "in:" .. cluster, "1"
    overwrite("SADD", K.cluster(cluster), broker.name)
    overwrite("SADD", K.clusters, cluster)
  end
  for id, member in pairs(broker.addrs) do flat[#flat + 1], flat[#flat + 2] = "addr:" .. id, member end
  call_many("HSET", key, flat)
  overwrite("SADD", K.brokers, broker.name)
  if broker.reduced and broker.acting == "1" and not broker.addrs["0"] then
    defer(ctx, "acting", broker.name, broker.epoch .. ":" .. event_id)
  end
end

-- Lapses are counted for some time (MASS_MS) after their members' leases are gone, unless these come back.
local function note_lapse(ctx, member)
  if not member.gone then
    overwrite("ZREM", K.lapses, member.key)
  elseif member.lapsed_ms then
    overwrite("ZADD", K.lapses, member.lapsed_ms, member.key)
    redis.call("ZREMRANGEBYSCORE", K.lapses, "-inf", "(" .. string.format("%.0f", ctx.now - MASS_MS))
    redis.call("PEXPIRE", K.lapses, MASS_MS)
  end
end

local function write_member(ctx, member)
  if ctx.rule then note_lapse(ctx, member) end
  local key = K.member(member.key)
  redis.call("DEL", key)
  if member.gone then
    redis.call("DEL", K.alive(member.key))
    redis.call("ZREM", K.leases, member.key)
    return
  end
  local flat = {}
  for field, value in pairs(member.fields) do flat[#flat + 1], flat[#flat + 2] = field, value end
  call_many("HSET", key, flat)
  redis.call("ZADD", K.leases, member.lease, member.key)
  if member.lease > ctx.now then
    redis.call("SET", K.alive(member.key), member.lease, "PX", member.lease - ctx.now)
  else
    redis.call("DEL", K.alive(member.key))
  end
end

-- Appends the entries, then writes what was changed; returns the id of the last entry or "".
local function commit(ctx)
  local last = append(ctx)
  store_hold(ctx)
  for _, broker in pairs(ctx.brokers) do
    if broker.dirty then write_broker(ctx, broker, last) end
  end
  for _, member in pairs(ctx.members) do
    if member.dirty then write_member(ctx, member) end
  end
  return last
end
