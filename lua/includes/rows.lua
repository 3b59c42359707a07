--- @include "counted"
--- @include "emit"
--- @include "damage"
-- Slices of a topic table, built in Python under the broker's generation fence. In ARGV from `at` on:
--   counts.mappings times  topic, TopicQueueMappingInfo as JSON ("" deletes)
--   counts.entries times   kind, cause, rows as JSON, count, topic ("" unless it is one)
-- With counts.rows the script writes that many topics, and those are the first entry's.
-- One script takes at most 500 topics.

-- How many of ARGV they are.
local function arguments_of(counts) return 2 * counts.mappings + 5 * counts.entries end

local function delete_field(key, field, names, name)
  overwrite("HDEL", key, field)
  if names and redis.call("EXISTS", key) == 0 then overwrite("SREM", names, name) end
end

-- rows: {{broker, before, after, {topic, ...}}, ...}; queue data "readQ,writeQ,perm,sysFlag", "" deletes. Returns how
-- many topics the broker has more than before.
local function write_topics(rows, name, epoch)
  local route, reverse, more = K.route(""), K.topics_of(name), 0
  for _, row in ipairs(rows) do
    local before, after, topics = row[2], row[3], row[4]
    if after == "" then
      for _, topic in ipairs(topics) do delete_field(route .. topic, name, K.topics, topic) end
      more = more - overwrite("HDEL", reverse, unpack(topics))
    else
      local text, stored, n = epoch .. "," .. after, {}, 0
      for _, topic in ipairs(topics) do
        overwrite("HSET", route .. topic, name, text)
        stored[n + 1], stored[n + 2] = topic, text
        n = n + 2
      end
      more = more + overwrite("HSET", reverse, unpack(stored))
      if before == "" then overwrite("SADD", K.topics, unpack(topics)) end
    end
  end
  return more
end

-- Returns how many more the broker has than before.
local function write_mappings(at, count, name, epoch)
  local more = 0
  for i = at, at + 2 * count - 1, 2 do
    local topic, info = ARGV[i], ARGV[i + 1]
    if info == "" then
      delete_field(K.mapping(topic), name)
      more = more - overwrite("HDEL", K.mappings_of(name), topic)
    else
      local full = epoch .. "," .. info
      overwrite("HSET", K.mapping(topic), name, full)
      more = more + overwrite("HSET", K.mappings_of(name), topic, full)
    end
  end
  return more
end

local function extend(list, more)
  for i = 1, #more do list[#list + 1] = more[i] end
  return list
end

-- before: the data version that the member had before, which the first entry has; nil where another entry has it
local function emit_rows(ctx, at, counts, fields, before)
  at = at + 2 * counts.mappings
  for n = 1, counts.entries do
    local entry = { "rows", ARGV[at + 2], "count", ARGV[at + 3], "topic", ARGV[at + 4] ~= "" and ARGV[at + 4] }
    extend(entry, fields)
    if n == 1 and before then extend(entry, { "dv_before", before }) end
    emit(ctx, ARGV[at], ARGV[at + 1], entry)
    at = at + 5
  end
end

-- Emits another data version of a member of which nothing else changes, in the entry of its rows where there are any.
-- subject: cluster, broker, id, addr and epoch, as names and values
local function emit_version(ctx, at, counts, subject, group_cluster, dv, before)
  local fields = extend(subject, { "dv", dv })
  if counts.entries > 0 then return emit_rows(ctx, at, counts, fields, before) end
  emit(ctx, "broker_updated", "register", extend(fields, { "group_cluster", group_cluster, "dv_before", before }))
end

-- Returns how many topics and how many mappings the broker has more than before.
local function write_rows(at, counts, name, epoch)
  local mappings = write_mappings(at, counts.mappings, name, epoch)
  if counts.rows == 0 then return 0, mappings end
  return write_topics(cjson.decode(ARGV[at + 2 * counts.mappings + 2]), name, epoch), mappings
end

-- The same of a broker that exists.
local function write_counted_rows(at, counts, name, epoch)
  local topics, mappings = write_rows(at, counts, name, epoch)
  count_rows(name, "topics", topics)
  count_rows(name, "mappings", mappings)
end
