--[[  lua/set_kv.lua: puts or deletes one KV entry; a namespace stays when its last key goes, until its place is wanted.
  KEYS[1] events:meta      hash  incarnation, seq
  KEYS[2] kv               set   KV namespaces
  KEYS[3] kv:<namespace>   hash  key -> value
  Also kv_bytes:<namespace>, a text: how many bytes it has; kv_versions:<namespace>, a hash: key -> its last change's id
  ARGV[1] request as JSON: origin, namespace, key, value (absent = delete, or with create = 1 only the namespace),
          create, limits (absent = none), if_match and if_none_match (lists of tags, "*" = any; absent = no condition)
  Returns the event id, "" when nothing changed; {"full", option} it would grow beyond a limit;
          {"unmet", tag} a condition does not hold: the key's tag, "" without a value  ]]
--- @include "clock"
--- @include "emit"
--- @include "kv_tag"
local COUNT_KEPT_BYTES, COUNT_KEPT_MS = 8192, 60000 -- from how many bytes on, and how long
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
local before = redis.call("HGET", KEYS[3], r.key)

-- The bytes of a namespace that has many are counted once a minute and kept beside it, as "<bytes> <keys> <when>":
-- reading all texts at each put blocked the store. A writer that does not note the count, such as an older release, shows at
-- once by the number of keys, and otherwise when the minute is over.
local count = { keys = redis.call("HLEN", KEYS[3]) }

local function read_count()
  local bytes, keys, at = string.match(text_or_nil("GET", K.kv_bytes_of(r.namespace)) or "", "^(%d+) (%d+) (%d+)$")
  at = tonumber(at)
  if at and tonumber(keys) == count.keys and at <= ctx.now and ctx.now < at + COUNT_KEPT_MS then
    count.bytes, count.at = tonumber(bytes), at
  end
end

local function keep_count()
  if count.bytes < COUNT_KEPT_BYTES then return end
  local text = string.format("%.0f %.0f %.0f", count.bytes, count.keys, count.at)
  redis.call("SET", K.kv_bytes_of(r.namespace), text, "PX", COUNT_KEPT_MS)
end

local function bytes_of_namespace()
  if not count.bytes then
    count.bytes, count.at = 0, ctx.now
    for _, text in ipairs(redis.call("HGETALL", KEYS[3])) do count.bytes = count.bytes + #text end
    keep_count() -- one that is refused counts for the next, too
  end
  return count.bytes
end

local function empty_namespace()
  for _, name in ipairs(redis.call("SMEMBERS", KEYS[2])) do
    local key = K.kv_of(name)
    if key ~= KEYS[3] and key ~= K.order and redis.call("EXISTS", key) == 0 then return name end
  end
end

local spare -- an empty namespace whose place this one takes

local more = (r.value and #r.key + #r.value or 0) - (before and #r.key + #before or 0)
local function limit_reached(limits)
  local new = (r.create or r.value) and redis.call("SISMEMBER", KEYS[2], r.namespace) == 0
  -- That of order topics always has a place: brokers depend on it.
  if new and K.kv_of(r.namespace) ~= K.order and redis.call("SCARD", KEYS[2]) >= limits.maxKvNamespaces then
    spare = empty_namespace()
    if not spare then return "maxKvNamespaces" end
  end
  if more <= 0 then return end -- what does not grow may stay
  if not before and redis.call("HLEN", KEYS[3]) >= limits.maxKvKeys then return "maxKvKeys" end
  if bytes_of_namespace() + more > limits.maxKvNamespaceBytes then return "maxKvNamespaceBytes" end
end

-- As RFC 9110 section 13.2.2 orders them: one of these tags has to be there, then none of those.
local function unmet()
  if not r.if_match and not r.if_none_match then return end
  local tag = kv_tag(r.namespace, r.key, before)
  local function listed(tags)
    for _, wanted in ipairs(tags) do
      if before and (wanted == "*" or wanted == tag) then return true end
    end
    return false
  end
  if r.if_match and not listed(r.if_match) then return { "unmet", tag } end
  if r.if_none_match and listed(r.if_none_match) then return { "unmet", tag } end
end

local refused = unmet()
if refused then return refused end
read_count()
local full = r.limits and limit_reached(r.limits)
if full then return { "full", full } end
local TEXT_MAX = 65536
local function put(list, field, value)
  if not value then return end
  local large = #value > TEXT_MAX
  list[#list + 1], list[#list + 2] = large and field .. "_bytes" or field, large and #value or value
end
if before ~= (r.value or false) then
  local fields = { "kv_ns", r.namespace, "key", r.key }
  put(fields, "before", before)
  put(fields, "after", r.value)
  emit(ctx, "kv_changed", r.value and (r.cause or "put") or "delete", fields)
end
local last = append(ctx)
if spare then redis.call("SREM", KEYS[2], spare) end
if r.create or r.value then redis.call("SADD", KEYS[2], r.namespace) end
if r.value then
  redis.call("HSET", KEYS[3], r.key, r.value)
  if last ~= "" then overwrite("HSET", K.kv_versions_of(r.namespace), r.key, last) end
elseif before then
  redis.call("HDEL", KEYS[3], r.key)
  overwrite("HDEL", K.kv_versions_of(r.namespace), r.key)
end
if more ~= 0 and count.bytes then
  count.bytes, count.keys = count.bytes + more, redis.call("HLEN", KEYS[3])
  keep_count()
end
return last
