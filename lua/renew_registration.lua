--[[  lua/renew_registration.lua: the short cut of unchanged registrations of living members, any number at once; any
  other goes to register.lua. As lua/heartbeat.lua, it includes only what it needs.
  KEYS[1] leases          zset    <cluster>:<addr> -> end (ms)
  KEYS[2] kv              set     KV namespaces
  KEYS[3] kv:ORDER_TOPIC_CONFIG  hash  topic -> order configuration
  and for each item:
  KEYS    alive:<m>       string  end of the lease, with TTL
  KEYS    member:<m>      hash    timeout, dv, sig, at, owners
  KEYS    broker:<name>   hash    epoch, gen, addr:0
  ARGV    member (<cluster>:<addr>)
  ARGV    signature
  ARGV    data version; "" when the signature covers it
  ARGV    owner <worker>/<connection>; "" for a registration over HTTP
  ARGV    broker id
  Returns {order table or {} of no renewal, reply, ...}: for each item {"unknown"}, {"lapsed"}, {"differs"}, or
          {"renewed", timeout (ms), {master, ha}}  ]]
--- @include "lease_ends"
--- @include "order"
local call = redis.call
local members = {}
for i = 1, #ARGV, 5 do members[#members + 1] = ARGV[i] end
local leases = call("ZMSCORE", KEYS[1], unpack(members))

-- The master of a slave; nil where register.lua must judge whether a hold keeps the master alive.
local function master_of(member_key, address)
  local lease = tonumber(call("ZSCORE", KEYS[1], address) or 0)
  if now >= lease then return nil end
  local key = string.match(member_key, "^ns:{[^}]*}:member:") .. address
  return { string.match(address, "^[^:]*:(.*)$"), call("HGET", key, "ha") or "" }
end

local ends, none = {}, { "", "" }

local function renewed(i, arg)
  local at = 3 * i
  local member = call("HMGET", KEYS[at + 2], "timeout", "dv", "sig", "at", "owner:" .. ARGV[arg + 3])
  local broker = call("HMGET", KEYS[at + 3], "epoch", "gen", "addr:0")
  local version = ARGV[arg + 2]
  if member[3] ~= ARGV[arg + 1] or not broker[1] or member[4] ~= broker[1] .. ":" .. broker[2]
    or (version ~= "" and version ~= member[2]) or (ARGV[arg + 3] ~= "" and not member[5]) then
    return { "differs" }
  end
  local till = lease_end(member[1])
  if not till then return { "differs" } end
  local master = none
  if ARGV[arg + 4] ~= "0" and broker[3] then
    master = master_of(KEYS[at + 2], broker[3])
    if not master then return { "differs" } end
  end
  ends[#ends + 1] = till
  ends[#ends + 1] = members[i]
  call("SET", KEYS[at + 1], till, "PX", member[1])
  return { "renewed", member[1], master }
end

local orders = order_table(KEYS[2], KEYS[3])
local replies = { {} }
for i = 1, #members do
  local lease = tonumber(leases[i] or nil)
  if not lease then
    replies[i + 1] = { "unknown" }
  elseif now >= lease then
    replies[i + 1] = { "lapsed" }
  else
    replies[i + 1] = renewed(i, 5 * i - 4)
  end
end
if #ends > 0 then
  replies[1] = orders
  call("ZADD", KEYS[1], unpack(ends))
end
return replies
