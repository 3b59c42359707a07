--[[  lua/set_topic.lua: sets or deletes queue data of one topic, beside the registrations (217, 216).
  KEYS[1] events:meta    hash  incarnation, seq
  KEYS[2] route:<topic>  hash  broker name -> epoch,queue data
  ARGV[1] request as JSON: origin, cause, topic, and either rows, each [broker, queue data], in the order given, or
          cluster ("" = every cluster) whose brokers lose the topic
  Returns the event id, "" when nothing changed  ]]
--- @include "counted"
--- @include "tables"
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {}, brokers = {}, members = {} }
local changes, rows = {}, {}

local function stored(name)
  local text = redis.call("HGET", KEYS[2], name)
  local epoch, data = string.match(text or "", "^(%d+),(.*)$")
  local broker = broker_of(ctx, name)
  return broker, broker.exists and epoch == broker.epoch and data or ""
end

local latest = {} -- of brokers that several rows name

local function change(name, after)
  local broker, before = stored(name)
  before = latest[name] or before
  if before == after then return end
  latest[name] = after
  changes[#changes + 1] = { broker = broker, after = after }
  rows[#rows + 1] = string.format("[%s,%s,%s,[%s]]", cjson.encode(name), cjson.encode(before), cjson.encode(after),
    cjson.encode(r.topic))
end

if r.rows then
  -- Java stops at the first unknown broker: what stands before it stays for an existing topic, a new one is not stored.
  local exists = false
  for _, name in ipairs(redis.call("HKEYS", KEYS[2])) do
    local _, data = stored(name)
    exists = exists or data ~= ""
  end
  for _, row in ipairs(r.rows) do
    if not broker_of(ctx, row[1]).exists then
      if not exists then changes, rows = {}, {} end
      break
    end
    change(row[1], row[2])
  end
else
  for _, name in ipairs(redis.call("HKEYS", KEYS[2])) do
    if r.cluster == "" or broker_of(ctx, name).clusters[r.cluster] then change(name, "") end
  end
end

if #changes == 0 then return "" end
local only = #changes == 1 and changes[1].broker
emit(ctx, "topics_changed", r.cause, {
  "broker", only and only.name, "epoch", only and only.epoch, "topic", r.topic,
  "rows", "[" .. table.concat(rows, ",") .. "]", "count", #changes,
})
local last = append(ctx)
for _, c in ipairs(changes) do
  local name = c.broker.name
  redis.call("HINCRBY", K.broker(name), "gen", 1)
  if c.after == "" then
    redis.call("HDEL", KEYS[2], name)
    count_rows(name, "topics", -redis.call("HDEL", K.topics_of(name), r.topic))
  else
    local text = c.broker.epoch .. "," .. c.after
    redis.call("HSET", KEYS[2], name, text)
    count_rows(name, "topics", redis.call("HSET", K.topics_of(name), r.topic, text))
  end
end
if redis.call("EXISTS", KEYS[2]) == 1 then
  redis.call("SADD", K.topics, r.topic)
else
  redis.call("SREM", K.topics, r.topic)
end
return last
