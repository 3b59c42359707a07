--[[  lua/set_kv.lua: puts or deletes one KV entry; a namespace stays when its last key goes, until its place is wanted.
  KEYS[1] events:meta      hash  incarnation, seq
  KEYS[2] kv               set   KV namespaces
  KEYS[3] kv:<namespace>   hash  key -> value
  ARGV[1] request as JSON: origin, namespace, key, value (absent = delete, or with create = 1 only the namespace),
          create, limits (absent = none)
  Returns the event id, "" when nothing changed; {"full", option} it would grow beyond a limit  ]]
--- @include "clock"
--- @include "emit"
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
local before = redis.call("HGET", KEYS[3], r.key)

local function bytes_of_namespace()
  local bytes = 0
  for _, text in ipairs(redis.call("HGETALL", KEYS[3])) do bytes = bytes + #text end
  return bytes
end

local function empty_namespace()
  for _, name in ipairs(redis.call("SMEMBERS", KEYS[2])) do
    if name ~= r.namespace and redis.call("EXISTS", K.kv_of(name)) == 0 then return name end
  end
end

local spare -- an empty namespace whose place this one takes

local function limit_reached(limits)
  local new = (r.create or r.value) and redis.call("SISMEMBER", KEYS[2], r.namespace) == 0
  -- That of order topics always has a place: brokers depend on it.
  if new and K.kv_of(r.namespace) ~= K.order and redis.call("SCARD", KEYS[2]) >= limits.maxKvNamespaces then
    spare = empty_namespace()
    if not spare then return "maxKvNamespaces" end
  end
  local more = r.value and #r.value - (before and #before or -#r.key) or 0
  if more <= 0 then return end -- what does not grow may stay
  if not before and redis.call("HLEN", KEYS[3]) >= limits.maxKvKeys then return "maxKvKeys" end
  if bytes_of_namespace() + more > limits.maxKvNamespaceBytes then return "maxKvNamespaceBytes" end
end

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
elseif before then
  redis.call("HDEL", KEYS[3], r.key)
end
return last
