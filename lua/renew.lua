--[[  lua/renew.lua: a beat of a living member, and the short cut of an unchanged registration. Anything else is for
  revive.lua (the lease had run out) or register.lua. Nearly every write of a steady cluster is this script, so it
  includes nothing that it can do without: each include costs its functions anew at every call.
  KEYS[1] leases          zset    <cluster>:<addr> -> end (ms)
  KEYS[2] alive:<m>       string  end of the lease, with TTL
  KEYS[3] member:<m>      hash    timeout, dv, and for a registration sig, at, owners
  KEYS[4] broker:<name>   hash    epoch, gen, addr:0 (registration only)
  KEYS[5] kv              set     KV namespaces (registration only)
  KEYS[6] kv:ORDER_TOPIC_CONFIG  hash  topic -> order configuration (registration only)
  ARGV[1] member (<cluster>:<addr>)
  ARGV[2] signature of a registration; "" for 904 and 322
  ARGV[3] its data version; "" when the signature covers it
  ARGV[4] owner mark <worker>/<connection>; "" when none is left
  ARGV[5] broker id
  Returns {"unknown"}, {"lapsed"}, {"differs"}; {"renewed", data version, {master, ha}, order table}  ]]
--- @include "clock"
local now = now_ms()
local lease = tonumber(redis.call("ZSCORE", KEYS[1], ARGV[1]) or nil)
if not lease then return { "unknown" } end
if now >= lease then return { "lapsed" } end

if ARGV[2] == "" then
  local member = redis.call("HMGET", KEYS[3], "timeout", "dv")
  redis.call("ZADD", KEYS[1], now + member[1], ARGV[1])
  redis.call("SET", KEYS[2], now + member[1], "PX", member[1])
  return { "renewed", member[2] or "" }
end

local member = redis.call("HMGET", KEYS[3], "timeout", "dv", "sig", "at", "owner:" .. ARGV[4])
local broker = redis.call("HMGET", KEYS[4], "epoch", "gen", "addr:0")
local at = broker[1] and broker[1] .. ":" .. broker[2]
local equal = member[3] == ARGV[2] and member[4] == at and (ARGV[3] == "" or ARGV[3] == member[2])
if not equal or (ARGV[4] ~= "" and not member[5]) then return { "differs" } end

local master = { "", "" }
if ARGV[5] ~= "0" and broker[3] then
  local ends = tonumber(redis.call("ZSCORE", KEYS[1], broker[3]) or 0)
  if now >= ends then return { "differs" } end -- whether a hold keeps it alive is register.lua's to judge
  local key = string.match(KEYS[3], "^ns:{[^}]*}:member:") .. broker[3]
  master = { string.match(broker[3], "^[^:]*:(.*)$"), redis.call("HGET", key, "ha") or "" }
end
redis.call("ZADD", KEYS[1], now + member[1], ARGV[1])
redis.call("SET", KEYS[2], now + member[1], "PX", member[1])
if redis.call("SISMEMBER", KEYS[5], "ORDER_TOPIC_CONFIG") == 0 then
  return { "renewed", member[2] or "", master, { "0" } }
end
local order = redis.call("HGETALL", KEYS[6])
table.insert(order, 1, "1")
return { "renewed", member[2] or "", master, order }
