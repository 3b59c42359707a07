--[[  lua/repair_routes.lua: compares the rows of topics' routes with what is stored of their brokers.
  KEYS[1] events:meta  hash  incarnation, seq
  KEYS[2] topics       set   topic names
  ARGV[1] request as JSON: origin, brokers (names whose tables are read though no route has them), drop (1: topics
          without a route are taken off the list), cursor ("" for whole routes; a page of the one topic's route, when it
          is long, or of its mapping info), table (which: "topics" or "mappings")
  ARGV[2] topics
  Returns {how many of them are done, next cursor of the page, {topic without a route, ...}, {topic with a long route,
          ...}, {topic with much mapping info, ...}, {broker name, rows that are the same on both sides, ...}, {repaired:
          brokers, members, topics, mappings}}  ]]
--- @include "repair_rows"
local ROWS_MAX, ROW_BYTES = 1000, 128 -- what costs as much as a row
local NAME = 6 -- rows that the first one of a broker costs besides
local LONG, LONG_BYTES = 400, 60000 -- rows of a route that is read in pages, or what PAGE or more take in memory
local PAGE, MAPPED_MAX = 100, 16 -- rows of a route, and of mapping info, that are read at once
local r = cjson.decode(ARGV[1])
local ctx = rows_ctx(r.origin)
local call = redis.call
local empty, long, unmapped, cursor, rows_read, done = {}, {}, {}, "0", 0, 0

-- Topics with the same rows, as those of a cluster that has every topic on every broker, are compared together. What is
-- in a hash is UTF-8, which has no byte 255. `names` has the groups of each broker: there are many of both where each topic
-- has brokers of its own.
local pages = {
  topics = { groups = {}, by_text = {}, names = {} }, mappings = { groups = {}, by_text = {}, names = {} },
}

local function collect(page, topic, flat)
  local text = table.concat(flat, "\255")
  local group = page.by_text[text]
  if not group then
    group = { topics = {}, rows = pairs_of(flat) }
    page.by_text[text], page.groups[#page.groups + 1] = group, group
    for name in pairs(group.rows) do
      if not page.names[name] then
        page.names[name], rows_read = {}, rows_read + NAME
      end
      table.insert(page.names[name], group)
    end
  end
  group.topics[#group.topics + 1] = topic
  rows_read = rows_read + #flat / 2 + #text / ROW_BYTES
end

local function collect_page(which, topic, count)
  local page = call("HSCAN", FORWARD[which](topic), r.cursor, "COUNT", count)
  cursor = page[1]
  collect(pages[which], topic, page[2])
end

local mapping_keys = {}
for i = 2, #ARGV do mapping_keys[i - 1] = K.mapping(ARGV[i]) end
local mapped = r.cursor == "" and call("EXISTS", unpack(mapping_keys)) > 0

local function collect_mappings(topic)
  if call("HLEN", K.mapping(topic)) > MAPPED_MAX then
    unmapped[#unmapped + 1] = topic
  else
    collect(pages.mappings, topic, call("HGETALL", K.mapping(topic)))
  end
end

local function is_long(length, key)
  return length > LONG or length > PAGE and call("MEMORY", "USAGE", key, "SAMPLES", 0) > LONG_BYTES
end

-- Returns false when there was no time for the topic.
local function collect_route(topic)
  local length = call("HLEN", K.route(topic))
  if is_long(length, K.route(topic)) then
    long[#long + 1] = topic
  else
    if done > 0 and rows_read + length > ROWS_MAX then return false end
    if length == 0 then empty[#empty + 1] = topic end
    collect(pages.topics, topic, call("HGETALL", K.route(topic)))
  end
  if mapped then collect_mappings(topic) end
  return true
end

if r.cursor == "" then
  for i = 2, #ARGV do
    if not collect_route(ARGV[i]) then break end
    done = done + 1
  end
else
  done = 1
  collect_page(r.table, ARGV[2], r.table == "topics" and PAGE or MAPPED_MAX)
end

local asked = {}
for _, name in ipairs(r.brokers) do
  asked[name], pages.topics.names[name] = true, pages.topics.names[name] or {}
end

-- Compares the rows of some topics that are `text`, or absent (false), with what is stored of the broker.
local function compare(which, owner, topics, text)
  local reverse, same = call("HMGET", REVERSE[which](owner.name), unpack(topics)), 0
  local current = is_current(owner, which, text)
  for n, stored in ipairs(reverse) do
    if stored == text and (current or not text) then
      if text and #r.brokers == 0 then same = same + 1 end -- else they were counted when they were restored
    elseif judge(ctx, which, owner, topics[n], text, stored) then
      same = same + 1
    end
  end
  return same
end

-- Topics are looked for that a broker has and their routes do not show, if it has most others, or was asked for.
local function compare_broker(which, page, name)
  local owner, same, rows = owner_of(ctx, name), 0, 0
  for _, group in ipairs(page.names[name]) do
    same = same + compare(which, owner, group.topics, group.rows[name])
    rows = rows + #group.topics
  end
  if asked[name] or rows * 2 >= done then
    for _, group in ipairs(page.groups) do
      if not group.rows[name] then same = same + compare(which, owner, group.topics, false) end
    end
  end
  return same
end

local alike = {}
for name in pairs(pages.topics.names) do
  alike[#alike + 1], alike[#alike + 2] = name, compare_broker("topics", pages.topics, name)
end
for name in pairs(pages.mappings.names) do compare_broker("mappings", pages.mappings, name) end

local function nowhere()
  local restored, topics = {}, {}
  for _, write in ipairs(ctx.writes) do restored[write.topic] = write.text end
  if r.drop == 0 or #empty == 0 then return topics end
  local listed = call("SMISMEMBER", KEYS[2], unpack(empty))
  for i, topic in ipairs(empty) do
    if listed[i] == 1 and not restored[topic] then
      topics[#topics + 1] = topic
      mended(ctx, "topics")
    end
  end
  if #topics > 0 then emit_repaired(ctx, "topics", {}, topics) end
  return topics
end

local dropped = nowhere()
commit_rows(ctx)
if #dropped > 0 then call("SREM", KEYS[2], unpack(dropped)) end
return { done, cursor, empty, long, unmapped, alike, counts_of(ctx) }
