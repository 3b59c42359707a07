--- @include "drains"
--- @include "tables"
-- Removal of members. A lapse is recorded once, by the script that next writes a member of that broker.
local LAPSES_MAX, WORK_MAX = 50, 800 -- a script, of lapses and of some 2 us each; the rest are for the next one

local GIVEN_AWAY = { replaced = true, switched = true } -- by a registration: for Java the group has lost no member

local function emit_removed(ctx, broker, member, id, cause, closed_ms)
  local fields, addrs = member.fields, addrs_json(broker)
  if not fields.timeout then mend_numbers(ctx, member) end -- it was lost, and only its place is known
  ctx.work = ctx.work + 4 + math.floor(#addrs / 200)
  emit(ctx, "broker_removed", cause, {
    "cluster", cluster_of(member.key), "broker", broker.name, "id", id, "addr", address_of(member.key),
    "group_cluster", broker.cluster ~= cluster_of(member.key) and broker.cluster,
    "epoch", broker.epoch, "addrs", addrs,
    "since_ms", fields.since, "last_seen_ms", member.lease - fields.timeout, "lease_ms", member.lease,
    "effective_ms", cause == "expired" and end_of(ctx, member.lease),
    "closed_ms", closed_ms or false,
    "topics", redis.call("HLEN", K.topics_of(broker.name)), "dv", fields.dv or false,
    "drained", drain_of(ctx, broker.name) and "1" or "0", "mirrored", fields.mirrored or false,
  })
end

local function vacate(ctx, member, place, cause, closed_ms)
  member.fields[place.field], member.dirty = nil, true
  local broker = broker_of(ctx, place.name)
  if broker.addrs[place.id] ~= member.key then return end
  broker.addrs[place.id] = nil
  broker.gen, broker.dirty = broker.gen + 1, true
  broker.reduced = broker.reduced or not GIVEN_AWAY[cause]
  emit_removed(ctx, broker, member, place.id, cause, closed_ms)
end

-- Whether a script that recorded so many lapses has done enough.
local function enough(ctx, count)
  return count >= LAPSES_MAX or ctx.work >= WORK_MAX
end

-- Removes a member from every place it registered, or from those under one broker name. Returns false where the
-- script has done enough before, but one place at least is done; another script goes on with what is left.
local function leave(ctx, member, cause, only, closed_ms)
  if cause == "expired" then member.lapsed_ms = end_of(ctx, member.lease) end
  local began = false
  for _, place in ipairs(places_of(member)) do
    if not only or place.name == only then
      if began and enough(ctx, 0) then return false end
      vacate(ctx, member, place, cause, closed_ms)
      began = true
    end
  end
  if #places_of(member) == 0 then member.gone, member.dirty = true, true end
  return true
end

-- Records the lapses of a broker's members, but not that of `except`. Returns how many there were, and whether
-- there may be more.
local function record_lapses(ctx, broker, except)
  local count = 0
  for _, id in ipairs(sorted_ids(broker.addrs)) do
    local key = broker.addrs[id]
    if key and key ~= except and lapsed(ctx, lease_of(ctx, key)) then
      if count > 0 and enough(ctx, count) then return count, true end
      if not leave(ctx, member_of(ctx, key), "expired") then return count + 1, true end
      count = count + 1
    end
  end
  return count, false
end

-- The names of the brokers that lost a member.
local function reduced_names(ctx)
  local names = {}
  for name, broker in pairs(ctx.brokers) do
    if broker.reduced then names[#names + 1] = name end
  end
  return names
end
