--[[  lua/repair_broker.lua: compares a broker with its members, their leases, and the sets that list it. A place of
  either side is a place; a broker without any is removed.
  KEYS[1] events:meta  hash  incarnation, seq
  ARGV[1] request as JSON: origin, name, clusters (whose sets list it), timeout (ms, of a member that has lost its own),
          from: how many of its members were compared by earlier calls
  Returns {how many are now, 0 when all, {repaired: brokers, members, topics, mappings}}  ]]
--- @include "repair"
local MEMBERS_MAX, SLACK_MS = 50, 1000
local r = cjson.decode(ARGV[1])
local ctx = repair_ctx(r.origin)
local broker = broker_of(ctx, r.name)
local ids = sorted_ids(broker.addrs)

local function listed_right()
  if redis.call("SISMEMBER", K.brokers, r.name) ~= (broker.exists and 1 or 0) then return false end
  for cluster in pairs(broker.clusters) do
    if redis.call("SISMEMBER", K.cluster(cluster), r.name) == 0 then return false end
    if redis.call("SISMEMBER", K.clusters, cluster) == 0 then return false end
  end
  for _, cluster in ipairs(r.clusters) do
    if not broker.clusters[cluster] and redis.call("SISMEMBER", K.cluster(cluster), r.name) == 1 then return false end
  end
  return true
end

local function mend_broker()
  if #ids > 0 and not has_attributes(broker) then
    mend_attributes(ctx, broker, cluster_of(broker.addrs[ids[1]]))
  elseif broker.damaged or not listed_right() or (broker.exists and #ids == 0) then
    broker.dirty = true
  end
  if not broker.dirty then return end
  for _, cluster in ipairs(r.clusters) do broker.listed[cluster] = true end
  mended(ctx, "brokers")
end

-- What the member has lost of itself, of this place, or of its lease.
local function mend_member(id, key)
  local member = member_of(ctx, key)
  local fields, place = member.fields, "slot:" .. id .. ":" .. r.name
  if member.damaged or not (member.exists and fields[place] and fields.broker and fields.id) then
    fields[place] = "1"
    fields.broker, fields.id = fields.broker or r.name, fields.id or id
    fields.since = fields.since or tostring(ctx.now)
    if not is_timeout(redis.call("HGET", K.member(key), "timeout")) then fields.timeout = tostring(r.timeout) end
    if not member.exists then broker.gen, broker.dirty = broker.gen + 1, true end
    member.exists, member.dirty = true, true
  end
  local latest = ctx.now + fields.timeout
  if member.lease == 0 then
    local kept = redis.call("GET", K.alive(key))
    member.lease = is_whole(kept) and tonumber(kept) or latest
    member.dirty = true
  end
  -- Written before the clock went back.
  if member.lease > latest + SLACK_MS then member.lease, member.dirty = latest, true end
  local short = countdown_part(fields.timeout)
  if member.lease > ctx.now + short + SLACK_MS and redis.call("EXISTS", K.alive(key)) == 0 then member.dirty = true end
  if member.dirty then mended(ctx, "members") end
end

local last = math.min(r.from + MEMBERS_MAX, #ids)
if r.from == 0 then mend_broker() end
for i = r.from + 1, last do mend_member(ids[i], broker.addrs[ids[i]]) end
local given = redis.call("GET", K.epoch)
if is_epoch(broker.epoch) and tonumber(broker.epoch) > (is_epoch(given) and tonumber(given) or 0) then
  redis.call("SET", K.epoch, broker.epoch) -- the next one is higher again
  mended(ctx, "brokers")
end
if ctx.counts.brokers + ctx.counts.members > 0 then
  emit_repaired(ctx, "brokers", { cjson.encode(r.name) })
  commit(ctx)
end
return { last < #ids and last or 0, counts_of(ctx) }
