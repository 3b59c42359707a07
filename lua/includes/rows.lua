--- @include "emit"
-- Slices of a topic table, built in Python under the broker's generation fence. In ARGV from `at` on:
--   counts.rows times      topic, queue data "readQ,writeQ,perm,sysFlag" ("" deletes)
--   counts.mappings times  topic, TopicQueueMappingInfo as JSON ("" deletes)
--   counts.entries times   kind, cause, rows as JSON, count, topic ("" unless it is one)
-- One script takes at most 500 topics.

local function delete_field(key, field, names, name)
  redis.call("HDEL", key, field)
  if names and redis.call("EXISTS", key) == 0 then redis.call("SREM", names, name) end
end

local function write_pairs(at, count, epoch, reverse, forward, name, names)
  local stored, known = {}, {}
  local call, last, full = redis.call
  for i = at, at + 2 * count - 1, 2 do
    local topic, text = ARGV[i], ARGV[i + 1]
    if text == "" then
      delete_field(forward(topic), name, names, topic)
      redis.call("HDEL", reverse, topic)
    else
      if text ~= last then last, full = text, epoch .. "," .. text end -- most are set up alike
      call("HSET", forward(topic), name, full)
      stored[#stored + 1], stored[#stored + 2] = topic, full
      known[#known + 1] = topic
    end
  end
  if #stored > 0 then
    redis.call("HSET", reverse, unpack(stored))
    if names then redis.call("SADD", names, unpack(known)) end
  end
end

local function emit_rows(ctx, at, counts, fields)
  at = at + 2 * (counts.rows + counts.mappings)
  for _ = 1, counts.entries do
    local entry = { "rows", ARGV[at + 2], "count", ARGV[at + 3], "topic", ARGV[at + 4] ~= "" and ARGV[at + 4] }
    for i = 1, #fields do entry[#entry + 1] = fields[i] end
    emit(ctx, ARGV[at], ARGV[at + 1], entry)
    at = at + 5
  end
end

local function write_rows(at, counts, name, epoch)
  write_pairs(at, counts.rows, epoch, K.topics_of(name), K.route, name, K.topics)
  write_pairs(at + 2 * counts.rows, counts.mappings, epoch, K.mappings_of(name), K.mapping, name)
end
