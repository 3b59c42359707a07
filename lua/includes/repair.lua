--- @include "tables"
-- What the repairs of damaged tables share. Which table is the truth for another: docs/keys.md.
local TOPICS_BYTES = 50000 -- of one entry

-- Holds are left alone: a repair judges no lease.
local function repair_ctx(origin)
  return {
    now = now_ms(), origin = origin, entries = {}, brokers = {}, members = {},
    counts = { brokers = 0, members = 0, topics = 0, mappings = 0 },
  }
end

local function mended(ctx, what) ctx.counts[what] = ctx.counts[what] + 1 end

-- Entries tell caches which replies are untrue, and readers that their tables may be.
local function emit_repaired(ctx, cause, names, topics)
  if not is_text(table.concat(names)) then names = {} end -- a row of no broker
  local brokers = "[" .. table.concat(names, ",") .. "]"
  local parts, bytes, count = {}, 0, 0
  local function close()
    emit(ctx, "tables_repaired", cause, {
      "brokers", brokers, "topics", count > 0 and "[" .. table.concat(parts, ",") .. "]",
      "count", math.max(count, #names),
    })
    parts, bytes, count = {}, 0, 0
  end
  for _, topic in ipairs(topics or {}) do
    if bytes > TOPICS_BYTES then close() end
    if is_text(topic) then
      count = count + 1
      parts[count] = cjson.encode(topic)
      bytes = bytes + #parts[count]
    end
  end
  close()
  redis.call("HSET", K.repair, "round", "1") -- readers need a checkpoint round; the walk asks for it at its end
end

-- What was in keys of another type is lost, drains and settings too: caches drop all. They are counted here, since no walk
-- may have come to them.
local function emit_wrong_type(ctx, keys, count)
  emit(ctx, "tables_repaired", "keys", { "keys", #keys > 0 and cjson.encode(keys), "count", count })
  redis.call("HSET", K.repair, "round", "1", "repaired_ms", string.format("%d", ctx.now),
    "keys", number_of(redis.call("HGET", K.repair, "keys"), 0) + count)
end

-- Makes the broker register with its whole table: by heartbeats (322) and registrations it learns that this is needed.
local function forget_version(ctx, broker)
  local id = sorted_ids(broker.addrs)[1]
  if not id then return end
  local member = member_of(ctx, broker.addrs["0"] or broker.addrs[id])
  id = broker.addrs["0"] and "0" or id
  if not member.exists then return end
  local fields = member.fields
  if fields.dv then
    emit(ctx, "broker_updated", "repair", {
      "cluster", cluster_of(member.key), "broker", broker.name, "id", id, "addr", address_of(member.key),
      "epoch", broker.epoch, "dv", "", "dv_before", fields.dv,
    })
  end
  fields.dv, fields.sig, fields.applied, fields.at = nil, nil, nil, nil
  member.dirty, broker.dirty, broker.gen = true, true, broker.gen + 1
end

-- Fills in what the hash of a broker has lost. The generation is higher than any that a worker has cached.
local function mend_attributes(ctx, broker, cluster)
  local before = broker.epoch
  if not is_epoch(broker.epoch) then
    local newest = 0
    for _, text in pairs(pairs_of(redis.call("HSCAN", K.topics_of(broker.name), 0, "COUNT", 1)[2])) do
      local epoch = string.match(text, "^(%d+),")
      if is_epoch(epoch) then newest = math.max(newest, tonumber(epoch)) end
    end
    -- One that no broker has, also when the last one given was lost.
    if redis.call("EXISTS", K.epoch) == 0 then redis.call("SET", K.epoch, string.format("%d", ctx.now)) end
    broker.epoch = string.format("%d", newest > 0 and newest or redis.call("INCR", K.epoch))
  end
  if broker.gen < 1 or before ~= broker.epoch then broker.gen = ctx.now end
  broker.cluster = broker.cluster or next(broker.clusters) or cluster
  broker.clusters[broker.cluster] = true
  if broker.acting ~= "1" then broker.acting = "0" end
  broker.exists, broker.dirty = true, true
end

local function has_attributes(broker)
  return is_epoch(broker.epoch) and broker.gen >= 1
    and broker.cluster and broker.clusters[broker.cluster] and (broker.acting == "0" or broker.acting == "1")
end

-- {brokers, members, topics, mappings}: how many rows of each were repaired
local function counts_of(ctx)
  local counts = ctx.counts
  return { counts.brokers, counts.members, counts.topics, counts.mappings }
end
