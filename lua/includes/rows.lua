--- @include "counted"
--- @include "emit"
--- @include "damage"
-- Slices of a topic table, built in Python under the broker's generation fence. In ARGV from some place on:
--   how many mappings, rows and entries there are
--   each mapping  topic, TopicQueueMappingInfo as JSON ("" deletes)
--   each row      queue data before and after "readQ,writeQ,perm,sysFlag" ("" is none), how many topics, topic, ...
--   each entry    kind, cause, rows as JSON, count, topic ("" unless it is one)
-- The script writes mappings and rows, at most 500 topics; entries may be of more.

-- Where the parts of the slice at `at` begin, and how many they are; it ends before `ends`.
local function slice_at(at)
  local mappings, rows, entries = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local rows_at = at + 3 + 2 * mappings
  local entries_at = rows_at
  for _ = 1, rows do entries_at = entries_at + 3 + ARGV[entries_at + 2] end
  return {
    mappings = mappings, mappings_at = at + 3, rows = rows, rows_at = rows_at, writes = mappings + rows > 0,
    entries = entries, entries_at = entries_at, ends = entries_at + 5 * entries,
  }
end

local function delete_field(key, field, names, name)
  overwrite("HDEL", key, field)
  if names and redis.call("EXISTS", key) == 0 then overwrite("SREM", names, name) end
end

-- Returns how many topics the broker has more than before.
local function write_topics(slice, name, epoch)
  local route, reverse, more, at = K.route(""), K.topics_of(name), 0, slice.rows_at
  for _ = 1, slice.rows do
    local before, after, first = ARGV[at], ARGV[at + 1], at + 3
    local last = at + 2 + ARGV[at + 2]
    if after == "" then
      for i = first, last do delete_field(route .. ARGV[i], name, K.topics, ARGV[i]) end
      more = more - overwrite("HDEL", reverse, unpack(ARGV, first, last))
    else
      local text, stored, n = epoch .. "," .. after, {}, 0
      for i = first, last do
        overwrite("HSET", route .. ARGV[i], name, text)
        stored[n + 1], stored[n + 2] = ARGV[i], text
        n = n + 2
      end
      more = more + overwrite("HSET", reverse, unpack(stored))
      if before == "" then overwrite("SADD", K.topics, unpack(ARGV, first, last)) end
    end
    at = last + 1
  end
  return more
end

-- Returns how many more the broker has than before.
local function write_mappings(slice, name, epoch)
  local more = 0
  for i = slice.mappings_at, slice.rows_at - 1, 2 do
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

-- before: the data version that the member had before, which the first entry has; nil where another entry has it
local function emit_rows(ctx, slice, fields, before)
  for at = slice.entries_at, slice.ends - 1, 5 do
    local topic, is_first = ARGV[at + 4], at == slice.entries_at
    emit(ctx, ARGV[at], ARGV[at + 1],
      { "rows", ARGV[at + 2], "count", ARGV[at + 3], "topic", topic ~= "" and topic }, fields,
      { "dv_before", is_first and before or false })
  end
end

-- Emits another data version of a member of which nothing else changes, in the entry of its rows where there are any.
-- fields: cluster, broker, id, addr, epoch and dv, as names and values
local function emit_version(ctx, slice, fields, group_cluster, before)
  if slice.entries > 0 then return emit_rows(ctx, slice, fields, before) end
  emit(ctx, "broker_updated", "register", fields, { "group_cluster", group_cluster, "dv_before", before })
end

-- Returns how many topics and how many mappings the broker has more than before.
local function write_rows(slice, name, epoch)
  local mappings = write_mappings(slice, name, epoch)
  return write_topics(slice, name, epoch), mappings
end

-- The same of a broker that exists.
local function write_counted_rows(slice, name, epoch)
  local topics, mappings = write_rows(slice, name, epoch)
  count_rows(name, "topics", topics)
  count_rows(name, "mappings", mappings)
end
