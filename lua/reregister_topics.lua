--[[  lua/reregister_topics.lua: registrations of living masters that differ from their last ones in their data version
  and some topics, any number at once. All are decided before the first is written; any other goes to register.lua.
  KEYS[1] events:meta     hash    incarnation, seq
  KEYS[2] leases          zset    <cluster>:<addr> -> end (ms)
  and for each item:
  KEYS    broker:<name>   hash    epoch, gen, cluster
  KEYS    member:<m>      hash    timeout, dv, sig, owners
  KEYS    alive:<m>       string  end of the lease, with TTL
  ARGV    request as JSON: origin, name, cluster, addr, member (<cluster>:<addr>), epoch, gen; sig and dv, and was_sig
          and was_dv, those of the last registration; owner ("" over HTTP), counts; where tables grow also
          limits and adds (lua/includes/growth.lua)
  ARGV    the slice, as lua/includes/rows.lua says
  Returns {order table, reply, ...}: for each item {"differs"}; {"full", option} it would grow beyond a limit;
          {"done", event id, epoch, generation, {"", ""}}  ]]
--- @include "countdown"
--- @include "growth"
--- @include "order"
--- @include "rows"
local call = redis.call

local requests, slices, members = {}, {}, {}
local at = 1
while at <= #ARGV do
  local r = cjson.decode(ARGV[at])
  local n = #requests + 1
  requests[n], slices[n], members[n] = r, at + 1, r.member
  at = at + 1 + arguments_of(r.counts)
end
local leases = call("ZMSCORE", KEYS[2], unpack(members))
local orders = order_table(K.kv, K.order)

local taken = {} -- keys that an earlier item writes

-- Returns what the writing needs, or nil and why it is not for this script.
local function decide(i, r)
  local broker_key, member_key = KEYS[3 * i], KEYS[3 * i + 1]
  local member = call("HMGET", member_key, "timeout", "dv", "sig", "owner:" .. r.owner)
  local broker = call("HMGET", broker_key, "epoch", "gen", "cluster")
  local lease, till = tonumber(leases[i] or 0), lease_end(member[1])
  if member[2] ~= r.was_dv or member[3] ~= r.was_sig or broker[1] ~= r.epoch or tonumber(broker[2]) ~= r.gen
    or now >= lease or (r.owner ~= "" and not member[4]) or not till
    or taken[broker_key] or taken[member_key] then
    return nil, { "differs" }
  end
  local full = r.adds and limit_of_topics(r.limits, r.name, r.adds, false)
  if full then return nil, { "full", full } end
  taken[broker_key], taken[member_key] = true, true
  return { timeout = member[1], lease = lease, till = till, group_cluster = broker[3] }
end

local function write(i, r, decided)
  local ctx = { now = now, origin = r.origin, entries = {} }
  emit_version(ctx, slices[i], r.counts, {
    "cluster", r.cluster, "broker", r.name, "id", "0", "addr", r.addr, "epoch", r.epoch,
  }, decided.group_cluster ~= r.cluster and decided.group_cluster, r.dv, r.was_dv)
  local last = append(ctx)
  local gen = r.gen + (r.counts.rows + r.counts.mappings > 0 and 1 or 0)
  if gen ~= r.gen then call("HSET", KEYS[3 * i], "gen", gen) end
  write_counted_rows(slices[i], r.counts, r.name, r.epoch)
  call("HSET", KEYS[3 * i + 1], "dv", r.dv, "sig", r.sig, "at", r.epoch .. ":" .. gen)
  if is_countdown_due(decided.lease, decided.timeout) then
    call("SET", KEYS[3 * i + 2], decided.till, "PX", decided.timeout)
  end
  return { "done", last, r.epoch, gen, { "", "" } }
end

local replies, decisions, ends = { orders }, {}, {}
for i, r in ipairs(requests) do decisions[i], replies[i + 1] = decide(i, r) end
for i, r in ipairs(requests) do
  local decided = decisions[i]
  if decided then
    replies[i + 1] = write(i, r, decided)
    ends[#ends + 1], ends[#ends + 2] = decided.till, members[i]
  end
end
if #ends > 0 then call("ZADD", KEYS[2], unpack(ends)) end
return replies
