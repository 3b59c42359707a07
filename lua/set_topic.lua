--[[  lua/set_topic.lua: sets or deletes queue data of one topic, beside the registrations (217, 216).
  KEYS[1] events:meta    hash  incarnation, seq
  KEYS[2] route:<topic>  hash  broker name -> epoch,queue data
  ARGV[1] request as JSON: origin, cause, topic, and either rows, each [broker, queue data], in the order given, limits
          (absent = they were checked), with the guard what lua/includes/ownership.lua says, and dry (they are checked only); or cluster ("" = every cluster) whose brokers
          lose the topic, and names (which of them; absent = all)
  Returns {event id, "" when nothing changed}; {"full", option, what (of a percentage)} it would grow
          beyond a limit; {"owned", broker name, id, member} of a broker of another principal; {"many"} without names
          a route of so many brokers takes several scripts  ]]
--- @include "clock"
--- @include "counted"
--- @include "emit"
--- @include "growth"
--- @include "damage"
--- @include "registrant"
local BROKERS_MAX = 150
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
local changes, rows = {}, {}

-- {name, epoch (false of no broker), whether the cluster lists it}, and the queue data that its epoch still shows
local function stored(name)
  local broker = redis.call("HMGET", K.broker(name), "epoch", "in:" .. (r.cluster or ""))
  local epoch, data = string.match(redis.call("HGET", KEYS[2], name) or "", "^(%d+),(.*)$")
  local current = broker[1] and epoch == broker[1]
  return { name = name, epoch = broker[1], listed = broker[2] }, current and data or ""
end

local latest = {} -- of brokers that several rows name

local function change(broker, before, after)
  local name = broker.name
  before = latest[name] or before
  if before == after then return end
  latest[name] = after
  changes[#changes + 1] = { broker = broker, before = before, after = after }
  rows[#rows + 1] = string.format("[%s,%s,%s,[%s]]", cjson.encode(name), cjson.encode(before), cjson.encode(after),
    cjson.encode(r.topic))
end

local function exists()
  for _, name in ipairs(redis.call("HKEYS", KEYS[2])) do
    local _, data = stored(name)
    if data ~= "" then return true end
  end
  return false
end

-- The id and the member of another principal than the caller that has a broker name, unless that has it too: its master,
-- where there is one, for any caller may register beside it.
local function of_other_principal(name)
  local id, member, is_callers
  local fields = redis.call("HGETALL", K.broker(name))
  for i = 1, #fields, 2 do
    local its_id = string.match(fields[i], "^addr:(.*)$")
    local registrant = its_id and redis.call("HGET", K.member(fields[i + 1]), "registrant")
    if registrant == r.registrant then
      is_callers = true
    elseif is_principal(registrant) and id ~= "0" then
      id, member = its_id, fields[i + 1]
    end
  end
  if id ~= "0" and is_callers then return end
  return id, member
end

if r.rows then
  -- Java stops at the first unknown broker: what stands before it stays for an existing topic, a new one is not stored.
  for _, row in ipairs(r.rows) do
    local broker, before = stored(row[1])
    if not broker.epoch then
      if not exists() then changes, rows = {}, {} end
      break
    end
    change(broker, before, row[2])
  end
else
  if not r.names and redis.call("HLEN", KEYS[2]) > BROKERS_MAX then return { "many" } end
  for _, name in ipairs(r.names or redis.call("HKEYS", KEYS[2])) do
    local broker, before = stored(name)
    if r.cluster == "" or broker.listed then change(broker, before, "") end
  end
end

if #changes == 0 then return { "" } end
if r.guard == 1 then
  for _, c in ipairs(changes) do
    local id, member = of_other_principal(c.broker.name)
    if id then return { "owned", c.broker.name, id, member } end
  end
end
if r.limits then
  local new = redis.call("EXISTS", KEYS[2]) == 0 and 1 or 0
  for i, c in ipairs(changes) do
    local adds = { broker = c.before == "" and 1 or 0, namespace = i == 1 and new or 0, mappings = 0 }
    local full, what = limit_of_topics(r.limits, c.broker.name, adds)
    if full then return { "full", full, what } end
  end
end
if r.dry then return { "" } end
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
    overwrite("HDEL", KEYS[2], name)
    count_rows(name, "topics", -overwrite("HDEL", K.topics_of(name), r.topic))
  else
    local text = c.broker.epoch .. "," .. c.after
    overwrite("HSET", KEYS[2], name, text)
    count_rows(name, "topics", overwrite("HSET", K.topics_of(name), r.topic, text))
  end
end
if redis.call("EXISTS", KEYS[2]) == 1 then
  overwrite("SADD", K.topics, r.topic)
else
  overwrite("SREM", K.topics, r.topic)
end
return { last }
