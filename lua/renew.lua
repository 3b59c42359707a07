--[[  lua/renew.lua: beats of living members, and the short cut of unchanged registrations, any number at once.
  Anything else is for revive.lua (the lease had run out) or register.lua. Nearly every write of a steady cluster is
  this script, so it includes nothing that it can do without: each include costs its functions anew at every call.
  KEYS[1] leases          zset    <cluster>:<addr> -> end (ms)
  KEYS[2] kv              set     KV namespaces (registration only)
  KEYS[3] kv:ORDER_TOPIC_CONFIG  hash  topic -> order configuration (registration only)
  and for each item:
  KEYS    alive:<m>       string  end of the lease, with TTL
  KEYS    member:<m>      hash    timeout, dv, and for a registration sig, at, owners
  KEYS    broker:<name>   hash    epoch, gen, addr:0 (registration only)
  ARGV    member (<cluster>:<addr>)
  ARGV    signature of a registration; "" for 904 and 322
  ARGV    its data version; "" when the signature covers it
  ARGV    owner mark <worker>/<connection>; "" when none is left
  ARGV    broker id
  Returns for each {"unknown"}, {"lapsed"}, {"differs"}; {"renewed", timeout, data version, {master, ha}, order table}  ]]
--- @include "clock"
local now = now_ms()
local call = redis.call
local members = {}
for i = 1, #ARGV, 5 do members[#members + 1] = ARGV[i] end
local leases = call("ZMSCORE", KEYS[1], unpack(members))
local none, without_order = { "", "" }, { "0" }
local order, ends = nil, {}

local function order_table()
  if order then return order end
  order = without_order
  if call("SISMEMBER", KEYS[2], "ORDER_TOPIC_CONFIG") == 1 then
    order = call("HGETALL", KEYS[3])
    table.insert(order, 1, "1")
  end
  return order
end

local function renewed(i, timeout, version, master, orders)
  local at = now + timeout
  ends[#ends + 1] = at
  ends[#ends + 1] = members[i]
  call("SET", KEYS[3 * i + 1], at, "PX", timeout)
  return { "renewed", timeout, version or "", master, orders }
end

-- What a slave is told of its master, nil where register.lua must judge whether a hold keeps the master alive.
local function master_of(i, address)
  local lease = tonumber(call("ZSCORE", KEYS[1], address) or 0)
  if now >= lease then return nil end
  local key = string.match(KEYS[3 * i + 2], "^ns:{[^}]*}:member:") .. address
  return { string.match(address, "^[^:]*:(.*)$"), call("HGET", key, "ha") or "" }
end

local function registered(i, arg)
  local signature, version, owner = ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3]
  local member = call("HMGET", KEYS[3 * i + 2], "timeout", "dv", "sig", "at", "owner:" .. owner)
  local broker = call("HMGET", KEYS[3 * i + 3], "epoch", "gen", "addr:0")
  local at = broker[1] and broker[1] .. ":" .. broker[2]
  local equal = member[3] == signature and member[4] == at and (version == "" or version == member[2])
  if not equal or (owner ~= "" and not member[5]) then return { "differs" } end
  local master = none
  if ARGV[arg + 4] ~= "0" and broker[3] then
    master = master_of(i, broker[3])
    if not master then return { "differs" } end
  end
  return renewed(i, member[1], member[2], master, order_table())
end

local replies = {}
for i = 1, #members do
  local lease, arg = tonumber(leases[i] or nil), 5 * i - 4
  if not lease then
    replies[i] = { "unknown" }
  elseif now >= lease then
    replies[i] = { "lapsed" }
  elseif ARGV[arg + 1] == "" then
    local member = call("HMGET", KEYS[3 * i + 2], "timeout", "dv")
    replies[i] = renewed(i, member[1], member[2], none, without_order)
  else
    replies[i] = registered(i, arg)
  end
end
if #ends > 0 then call("ZADD", KEYS[1], unpack(ends)) end
return replies
