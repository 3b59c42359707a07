--[[  lua/checkpoint.lua: writes the next slice of a checkpoint round to the stream, or begins a requested one. The
  state of the round is in the store: any process may ask for the next slice, and several may at once.
  KEYS[1] events:meta        hash  incarnation, seq, holds
  KEYS[2] events:round       hash  the last round: number, cause, inc, begun (id of its first entry), what it has
          counted, and at: what comes next; name, epoch, cursor: of the broker or KV namespace it is at
  KEYS[3] events:round:left  set   brokers and drained names, later KV namespaces, that are not written yet
  KEYS[4] events:asked       hash  cause -> actor that requested the next round
  ARGV[1] request as JSON: origin, slice (topics that a script writes again, or as much other work), hidden {option: 1, ...}
  Returns {event id, state}: "idle" no round is requested, "more" it goes on, "ended"  ]]
--- @include "tables"
local NAMES_MAX, MEMBERS_MAX, MAPPINGS_MAX, VALUES_MAX = 64, 100, 25, 2
local PAIRS_MAX, ENTRY_BYTES, TEXT_MAX = 500, 60000, 65536
local BYTES, VALUE_BYTES = 50, 500 -- written, or only read, that cost as much as a topic
local COUNTED = { "entries", "brokers", "members", "topics", "mappings", "kv", "settings" }
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {}, brokers = {}, members = {} }
local round = pairs_of(redis.call("HGETALL", KEYS[2]))
round.number = tonumber(round.number or 0) or 0
for _, counted in ipairs(COUNTED) do round[counted] = tonumber(round[counted] or 0) or 0 end
local quote = cjson.encode

local names, taken, refill = redis.call("SRANDMEMBER", KEYS[3], NAMES_MAX), {}, nil
local work, stopped = r.slice, false

local function emit_scope(scope, fields)
  local all = { "round", round.number, "scope", scope }
  for i = 1, #fields do all[#all + 1] = fields[i] end
  emit(ctx, "checkpoint", round.cause, all)
  round.entries = round.entries + 1
end

local function count(what, number, cost)
  round[what] = round[what] + number
  work = work - number * cost
end

-- Goes to the next name that is left; false when this script can take no more, or none is left.
local function next_name(after)
  local name = names[#taken + 1]
  if name then
    taken[#taken + 1], round.name, round.cursor = name, name, "0"
    return true
  end
  stopped = true
  if redis.call("SCARD", KEYS[3]) == #taken then round.at = after end
  return false
end

-- Collects texts and hands them on in parts that an entry may carry: `flush(parts, how many)`.
local function cut(most, flush)
  local parts, bytes = {}, 0
  local function close(even_none)
    if #parts > 0 or even_none then flush(parts, #parts) end
    parts, bytes = {}, 0
  end
  local function add(text, size)
    if #parts == most or (bytes > 0 and bytes + size > ENTRY_BYTES) then close() end
    parts[#parts + 1] = text
    bytes = bytes + size
  end
  return add, close
end

local function member_json(key)
  local fields = redis.call("HMGET", K.member(key), "since", "ha", "timeout", "filters", "dv", "mirrored")
  if not is_whole(fields[1]) then fields[1] = tostring(ctx.now) end -- until they are repaired
  if not is_timeout(fields[3]) then fields[3] = TIMEOUT_MS end
  local lease = lease_of(ctx, key)
  return table.concat({
    '{"cluster":', quote(cluster_of(key)), ',"addr":', quote(address_of(key)), ',"since_ms":', fields[1],
    ',"ha":', quote(fields[2] or ""), ',"timeout_ms":', fields[3], ',"filters":', fields[4] or "[]",
    ',"dv":', quote(fields[5] or ""), fields[6] and ',"mirrored":' .. quote(fields[6]) or "",
    string.format(',"last_seen_ms":%d,"lease_ms":%d}', lease - fields[3], lease),
  })
end

-- Whether the broker that the round is at still has its epoch; if not, entries have said so.
local function same_broker()
  if redis.call("HGET", K.broker(round.name), "epoch") == round.epoch then return true end
  round.at = "brokers"
  return false
end

local function pages(key, most)
  local reply = redis.call("HSCAN", key, round.cursor, "COUNT", math.max(math.min(work, most), 1))
  round.cursor = reply[1]
  return reply[2]
end

-- The next members of the broker by their ids, in the first entry with its attributes; the cursor is the last id. A
-- page of HSCAN would be the whole of a hash as small as this one, and members may have much to tell.
local function emit_members(scope, attributes)
  local add, close = cut(MEMBERS_MAX, function(parts, number)
    local fields = { "broker", round.name, "epoch", round.epoch }
    for i = 1, #attributes do fields[#fields + 1] = attributes[i] end
    fields[#fields + 1], fields[#fields + 2] = "members", "{" .. table.concat(parts, ",") .. "}"
    fields[#fields + 1], fields[#fields + 2] = "count", number
    emit_scope(scope, fields)
    count("members", number, 0)
    scope, attributes = "members", {}
  end)
  local broker, bytes = broker_of(ctx, round.name), 0
  round.at = "topics"
  for _, id in ipairs(sorted_ids(broker.addrs)) do
    if round.cursor == "" or tonumber(id) > tonumber(round.cursor) then
      if bytes > work * BYTES then
        round.at = "members"
        break
      end
      local text = quote(id) .. ":" .. member_json(broker.addrs[id])
      add(text, #text)
      round.cursor, bytes = id, bytes + 5 * BYTES + #text
    end
  end
  close(scope == "broker")
  work = work - math.floor(bytes / BYTES)
  if round.at == "topics" then round.cursor = "0" end
end

local STEPS = {}

function STEPS.brokers()
  if not next_name("kv") then
    refill = round.at == "kv" and K.kv
    return
  end
  local broker, drain = broker_of(ctx, round.name), redis.call("HGET", K.drains, round.name)
  if not broker.exists then
    if drain then emit_scope("broker", { "broker", round.name, "drain", drain }) end
    return
  end
  local clusters = {}
  for cluster in pairs(broker.clusters) do clusters[#clusters + 1] = quote(cluster) end
  round.epoch, round.cursor = broker.epoch, ""
  emit_members("broker", {
    "cluster", broker.cluster, "clusters", "[" .. table.concat(clusters, ",") .. "]",
    "acting", broker.acting, "zone", broker.zone or false, "drain", drain,
  })
  count("brokers", 1, 10)
end

function STEPS.members()
  if same_broker() then emit_members("members", {}) end
end

function STEPS.topics()
  if not same_broker() then return end
  local own, alike, order = "^" .. round.epoch .. ",(.*)$", {}, {} -- topics by text, and texts, of the entry so far
  local add, close = cut(PAIRS_MAX, function(_, number)
    local rows = {}
    for i, text in ipairs(order) do
      local data = string.match(text, own)
      rows[i] = table.concat({
        "[", quote(round.name), ',"",', quote(data), ",[", table.concat(alike[text], ","), "]]",
      })
    end
    emit_scope("topics", {
      "broker", round.name, "epoch", round.epoch, "rows", "[" .. table.concat(rows, ",") .. "]", "count", number,
    })
    count("topics", number, 1)
    alike, order = {}, {}
  end)
  local flat = pages(K.topics_of(round.name), PAIRS_MAX)
  for i = 1, #flat, 2 do
    local text = flat[i + 1]
    if alike[text] or string.find(text, own) then
      local topic = quote(flat[i])
      add(topic, #topic)
      if not alike[text] then alike[text], order[#order + 1] = {}, text end
      alike[text][#alike[text] + 1] = topic
    end
  end
  close()
  work = work - 2
  if round.cursor == "0" then round.at = "mappings" end
end

function STEPS.mappings()
  if not same_broker() then return end
  local own = round.epoch .. ","
  local add, close = cut(MAPPINGS_MAX, function(rows, number)
    emit_scope("mappings", {
      "broker", round.name, "epoch", round.epoch, "rows", "[" .. table.concat(rows, ",") .. "]", "count", number,
    })
    count("mappings", number, 5)
  end)
  local flat = pages(K.mappings_of(round.name), MAPPINGS_MAX)
  for i = 1, #flat, 2 do
    if string.sub(flat[i + 1], 1, #own) == own then
      local info = string.sub(flat[i + 1], #own + 1)
      add(table.concat({ "[", quote(round.name), ",", quote(flat[i]), ",null,", info, "]" }), #flat[i] + #info)
      work = work - math.floor(#info / BYTES)
    end
  end
  close()
  work = work - 2
  if round.cursor == "0" then round.at = "brokers" end
end

function STEPS.kv()
  if next_name("settings") then round.at = "values" end
end

function STEPS.values()
  local add, close = cut(PAIRS_MAX, function(parts, number)
    emit_scope("kv", { "kv_ns", round.name, "values", "{" .. table.concat(parts, ",") .. "}", "count", number })
    count("kv", number, 10)
  end)
  local flat = pages(K.kv_of(round.name), VALUES_MAX)
  for i = 1, #flat, 2 do
    local value = #flat[i + 1] > TEXT_MAX and #flat[i + 1] or flat[i + 1] -- in place of a large one its size in bytes
    local text = quote(flat[i]) .. ":" .. quote(value)
    add(text, #text)
    work = work - math.floor(#text / BYTES + #flat[i + 1] / VALUE_BYTES)
  end
  close()
  work = work - 2
  if round.cursor == "0" then round.at = "kv" end
end

function STEPS.settings()
  local parts = {}
  for option, value in pairs(pairs_of(redis.call("HGETALL", K.settings))) do
    parts[#parts + 1] = quote(option) .. ":" .. (r.hidden[option] and '"***"' or quote(value))
  end
  emit_scope("settings", { "settings", "{" .. table.concat(parts, ",") .. "}", "count", #parts })
  count("settings", #parts, 1)
  round.at = "end"
end

STEPS["end"] = function()
  local fields = {}
  round.entries = round.entries + 1 -- this one too
  for _, counted in ipairs(COUNTED) do
    fields[#fields + 1], fields[#fields + 2] = counted, round[counted]
  end
  round.entries = round.entries - 1
  emit_scope("end", fields)
  round.at, stopped = "done", true
end

-- Whether a round has what its step goes on from.
local CURSORS = { members = "^%-?%d*$", topics = "^%d+$", mappings = "^%d+$", values = "^%d+$" }
local function is_sound(round)
  local cursor = CURSORS[round.at]
  if not cursor then return STEPS[round.at] ~= nil end
  return round.name and (round.epoch or round.at == "values") and string.find(round.cursor or "?", cursor) ~= nil
end

-- A round of another incarnation is void: the entries before it are gone. So is one that was damaged.
local asked = pairs_of(redis.call("HGETALL", KEYS[4]))
local inc = redis.call("EXISTS", K.events) == 1 and redis.call("HGET", KEYS[1], "inc")
local under_way = round.at and round.at ~= "done"
local void = under_way and (round.inc ~= inc or not is_sound(round))

if under_way and not void then
  repeat STEPS[round.at]() until stopped or work <= 0
elseif void or next(asked) then
  local meta = redis.call("HMGET", KEYS[1], "hold_from_ms", "hold_until_ms")
  ctx.hold_from = whole(meta[1])
  ctx.hold_until = ctx.hold_from and whole(meta[2])
  local cause = (asked.start or not inc) and "start" or asked.gap and "gap" or asked.request and "request"
  round = { number = round.number + 1, cause = cause or round.cause or "request", at = "brokers" }
  for _, counted in ipairs(COUNTED) do round[counted] = 0 end
  emit_scope("begin", { "hold", hold_json(ctx) })
  refill = K.brokers
else
  return { "", "idle" }
end

local last = append(ctx)
if round.at == "brokers" and refill == K.brokers then
  round.begun, round.inc = last, redis.call("HGET", KEYS[1], "inc")
  redis.call("DEL", KEYS[4])
end
if #taken > 0 then redis.call("SREM", KEYS[3], unpack(taken)) end
if refill then redis.call("SUNIONSTORE", KEYS[3], refill) end
if refill == K.brokers then -- a drain outlives its broker
  call_many("SADD", KEYS[3], redis.call("HKEYS", K.drains))
end
local flat = {}
for field, value in pairs(round) do flat[#flat + 1], flat[#flat + 2] = field, value end
redis.call("DEL", KEYS[2])
redis.call("HSET", KEYS[2], unpack(flat))
return { last, round.at == "done" and "ended" or "more" }
