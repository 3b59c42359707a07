--[[  lua/renew_registration.lua: the short cut of unchanged registrations of living members, any number at once; any
  other goes to register.lua. As lua/heartbeat.lua, it includes only what it needs.
  KEYS[1] leases          zset    <cluster>:<addr> -> end (ms)
  KEYS[2] kv              set     KV namespaces
  KEYS[3] kv:ORDER_TOPIC_CONFIG  hash  topic -> order configuration
  and for each item:
  KEYS    member:<m>      hash    timeout, dv, sig, at, owners
  KEYS    broker:<name>   hash    epoch, gen, addr:0
  ARGV    member (<cluster>:<addr>)
  ARGV    signature
  ARGV    data version; "" when the signature covers it
  ARGV    owner <worker>/<connection>; "" for a registration over HTTP
  ARGV    broker id
  and after all items, for each:
  ARGV    reply expected: "<timeout> <master> <ha>"; "" for none
  Returns {order table or {} of no renewal, i, reply, ...}, of the items whose reply is another: {"unknown"}, {"lapsed"},
          {"differs"}, or {"renewed", timeout (ms), {master, ha}}  ]]
--- @include "renewals"
--- @include "order"
local n = #ARGV / 6
local members = {}
for i = 1, n do members[i] = ARGV[5 * i - 4] end

-- The address of a slave's master, and for its replication; nil where register.lua must judge whether a hold keeps it
-- alive.
local function master_of(address)
  local lease = tonumber(call("ZSCORE", KEYS[1], address) or 0)
  if now >= lease then return nil end
  return string.match(address, "^[^:]*:(.*)$"), call("HGET", namespace .. "member:" .. address, "ha") or ""
end

local none = { "", "" }

local function judge(i)
  local at = 5 * i - 4
  local member = call("HMGET", KEYS[2 * i + 2], "timeout", "dv", "sig", "at", "owner:" .. ARGV[at + 3])
  local broker = call("HMGET", KEYS[2 * i + 3], "epoch", "gen", "addr:0")
  local version = ARGV[at + 2]
  if member[3] ~= ARGV[at + 1] or not broker[1] or member[4] ~= broker[1] .. ":" .. broker[2]
    or (version ~= "" and version ~= member[2]) or (ARGV[at + 3] ~= "" and not member[5])
    or not lease_end(member[1]) then
    return nil, "differs"
  end
  if ARGV[at + 4] == "0" or not broker[3] then return member[1], " ", none end
  local master, ha = master_of(broker[3])
  if not master then return nil, "differs" end
  return member[1], master .. " " .. ha, { master, ha }
end

local replies, renewed = renew(members, n, judge)
table.insert(replies, 1, renewed and order_table(KEYS[2], KEYS[3]) or {})
return replies
