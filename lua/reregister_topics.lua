--[[  lua/reregister_topics.lua: registrations of living masters that differ from their last ones in their data version
  and some topics, any number at once. All are decided before the first is written; any other goes to register.lua.
  KEYS[1] events:meta     hash    incarnation, seq
  KEYS[2] leases          zset    <cluster>:<addr> -> end (ms)
  and for each item:
  KEYS    broker:<name>   hash    epoch, gen, cluster
  KEYS    member:<m>      hash    timeout, dv, sig, owners
  KEYS    alive:<m>       string  end of the lease, with TTL
  ARGV    op, actor, peer ("" without) of the origin
  ARGV    name, cluster, addr, member (<cluster>:<addr>)
  ARGV    epoch, gen; sig and dv of the last registration; sig and dv
  ARGV    owner, "" over HTTP
  ARGV    where tables grow limits and adds (lua/includes/growth.lua) as JSON, else ""
  ARGV    the slice, as lua/includes/rows.lua says
  Returns {order table, reply, ...}: for each item {"differs"}; {"full", option} it would grow beyond a limit;
          {"done", event id, epoch, generation, {"", ""}}  ]]
--- @include "countdown"
--- @include "growth"
--- @include "order"
--- @include "rows"
local call = redis.call

local function item_at(at)
  return {
    op = ARGV[at], actor = ARGV[at + 1], peer = ARGV[at + 2] ~= "" and ARGV[at + 2],
    name = ARGV[at + 3], cluster = ARGV[at + 4], addr = ARGV[at + 5], member = ARGV[at + 6],
    epoch = ARGV[at + 7], gen = ARGV[at + 8], was_sig = ARGV[at + 9], was_dv = ARGV[at + 10],
    sig = ARGV[at + 11], dv = ARGV[at + 12], owner = ARGV[at + 13], growth = ARGV[at + 14], slice = slice_at(at + 15),
  }
end

local items, members, at = {}, {}, 1
while at <= #ARGV do
  local item, n = item_at(at), #items + 1
  items[n], members[n], at = item, item.member, item.slice.ends
end
local leases = call("ZMSCORE", KEYS[2], unpack(members))
local orders = order_table(K.kv, K.order)

local taken = {} -- keys that an earlier item writes

-- Returns what the writing needs, or nil and why it is not for this script.
local function decide(i, item)
  local broker_key, member_key = KEYS[3 * i], KEYS[3 * i + 1]
  local member = call("HMGET", member_key, "timeout", "dv", "sig", "owner:" .. item.owner)
  local broker = call("HMGET", broker_key, "epoch", "gen", "cluster")
  local lease, till = tonumber(leases[i] or 0), lease_end(member[1])
  if member[2] ~= item.was_dv or member[3] ~= item.was_sig or broker[1] ~= item.epoch or broker[2] ~= item.gen
    or now >= lease or (item.owner ~= "" and not member[4]) or not till
    or taken[broker_key] or taken[member_key] then
    return nil, { "differs" }
  end
  if item.growth ~= "" then
    local growth = cjson.decode(item.growth)
    local full = limit_of_topics(growth.limits, item.name, growth.adds, false)
    if full then return nil, { "full", full } end
  end
  taken[broker_key], taken[member_key] = true, true
  return { item = item, at = 3 * i, timeout = member[1], lease = lease, till = till, group_cluster = broker[3] }
end

-- Returns the group of its one entry.
local function group_of(decided)
  local item, group_cluster = decided.item, decided.group_cluster
  local ctx = { now = now, origin = item, entries = {} }
  emit_version(ctx, item.slice, {
    "cluster", item.cluster, "broker", item.name, "id", "0", "addr", item.addr, "epoch", item.epoch, "dv", item.dv,
  }, group_cluster ~= item.cluster and group_cluster, item.was_dv)
  return ctx
end

local function write(decided, event_id)
  local item, gen, key = decided.item, decided.item.gen, decided.at
  if item.slice.writes then
    gen = tostring(gen + 1)
    call("HSET", KEYS[key], "gen", gen)
    write_counted_rows(item.slice, item.name, item.epoch)
  end
  call("HSET", KEYS[key + 1], "dv", item.dv, "sig", item.sig, "at", item.epoch .. ":" .. gen)
  if is_countdown_due(decided.lease, decided.timeout) then
    call("SET", KEYS[key + 2], decided.till, "PX", decided.timeout)
  end
  return { "done", event_id, item.epoch, gen, { "", "" } }
end

local replies, decisions, groups = { orders }, {}, {}
for i, item in ipairs(items) do
  local decided, why_not = decide(i, item)
  replies[i + 1] = why_not
  if decided then
    local n = #groups + 1
    decisions[n], groups[n] = decided, group_of(decided)
  end
end
if #groups == 0 then return replies end
local ids, ends = append_groups(groups), {}
for n, decided in ipairs(decisions) do
  replies[decided.at / 3 + 1] = write(decided, ids[n])
  ends[#ends + 1], ends[#ends + 2] = decided.till, decided.item.member
end
call("ZADD", KEYS[2], unpack(ends))
return replies
