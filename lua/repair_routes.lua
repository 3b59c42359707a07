--[[  lua/repair_routes.lua: compares the rows of topics' routes with what is stored of their brokers.
  KEYS[1] events:meta  hash  incarnation, seq
  KEYS[2] topics       set   topic names
  ARGV[1] request as JSON: origin, brokers (names whose tables are read though no route has them), drop (1: topics
          without a route are taken off the list), cursor ("" for whole routes; a page of that of the one topic, when
          it is long)
  ARGV[2] topics
  Returns {how many of them are done, next cursor of the page, {topic without a route, ...}, {topic with a long route,
          ...}, {broker name, rows that are the same on both sides, ...}, {repaired: brokers, members, topics,
          mappings}}  ]]
--- @include "repair_rows"
local ROWS_MAX, LONG = 1000, 400
local r = cjson.decode(ARGV[1])
local ctx = rows_ctx(r.origin)
local call = redis.call
local empty, long, cursor, rows_read, done = {}, {}, "0", 0, 0

-- Topics with the same rows, as those of a cluster that has every topic on every broker, are compared together. What is
-- in a hash is UTF-8, which has no byte 255.
local pages = {
  topics = { groups = {}, by_text = {}, names = {} }, mappings = { groups = {}, by_text = {}, names = {} },
}

local function collect(page, topic, flat)
  local text = table.concat(flat, "\255")
  local group = page.by_text[text]
  if not group then
    group = { topics = {}, rows = pairs_of(flat) }
    page.by_text[text], page.groups[#page.groups + 1] = group, group
    for name in pairs(group.rows) do page.names[name] = true end
  end
  group.topics[#group.topics + 1] = topic
  rows_read = rows_read + #flat / 2
end

local function read(key)
  if r.cursor == "" then return call("HGETALL", key) end
  local page = call("HSCAN", key, r.cursor, "COUNT", LONG / 2)
  cursor = page[1]
  return page[2]
end

local mapping_keys = {}
for i = 2, #ARGV do mapping_keys[i - 1] = K.mapping(ARGV[i]) end
local mapped = r.cursor == "" and call("EXISTS", unpack(mapping_keys)) > 0

for i = 2, #ARGV do
  local topic, key = ARGV[i], K.route(ARGV[i])
  local length = call("HLEN", key)
  if length > LONG and r.cursor == "" then
    long[#long + 1] = topic
  else
    if done > 0 and rows_read + length > ROWS_MAX then break end
    if length == 0 then empty[#empty + 1] = topic end
    collect(pages.topics, topic, read(key))
    if mapped then collect(pages.mappings, topic, call("HGETALL", mapping_keys[i - 1])) end
  end
  done = done + 1
end

local asked = {}
for _, name in ipairs(r.brokers) do asked[name], pages.topics.names[name] = true, true end

-- Compares the rows of some topics that are `text`, or absent (false), with what is stored of the broker.
local function compare(which, owner, topics, text)
  local reverse, same = call("HMGET", REVERSE[which](owner.name), unpack(topics)), 0
  local current = is_current(owner, which, text)
  for n, stored in ipairs(reverse) do
    if stored == text and (current or not text) then
      same = same + 1
    elseif judge(ctx, which, owner, topics[n], text, stored) then
      same = same + 1
    end
  end
  return text and same or 0
end

-- Topics are looked for that a broker has and their routes do not show, if it has most others, or was asked for.
local function compare_broker(which, page, name)
  local owner, same, rows, lacking = owner_of(ctx, name), 0, 0, {}
  for _, group in ipairs(page.groups) do
    local text = group.rows[name]
    if text then
      same = same + compare(which, owner, group.topics, text)
      rows = rows + #group.topics
    else
      lacking[#lacking + 1] = group
    end
  end
  if asked[name] or rows * 2 >= done then
    for _, group in ipairs(lacking) do compare(which, owner, group.topics, false) end
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
return { done, cursor, empty, long, alike, counts_of(ctx) }
