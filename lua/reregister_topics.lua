--[[  lua/reregister_topics.lua: a registration of a living master that differs from its last one in its data version
  and some topics, which one script can write. Any other goes to register.lua.
  KEYS[1] events:meta     hash    incarnation, seq
  KEYS[2] broker:<name>   hash    epoch, gen, cluster
  KEYS[3] member:<m>      hash    timeout, dv, sig, owners
  KEYS[4] alive:<m>       string  end of the lease, with TTL
  KEYS[5] leases          zset    <cluster>:<addr> -> end (ms)
  ARGV[1] request as JSON: origin, name, cluster, addr, member (<cluster>:<addr>), epoch, gen; sig and dv, and was_sig
          and was_dv, those of the last registration; owner ("" over HTTP), counts; where tables grow also
          limits and adds (lua/includes/growth.lua)
  ARGV[2] the slice, as lua/includes/rows.lua says
  Returns {"differs"}; {"full", option} it would grow beyond a limit; else as lua/register.lua
          {"done", event id, epoch, generation, {"", ""}, order table}  ]]
--- @include "clock"
--- @include "growth"
--- @include "order"
--- @include "rows"
--- @include "timeouts"
local r = cjson.decode(ARGV[1])
local call = redis.call
local now = now_ms()
local member = call("HMGET", KEYS[3], "timeout", "dv", "sig", "owner:" .. r.owner)
local broker = call("HMGET", KEYS[2], "epoch", "gen", "cluster")
local lease = tonumber(call("ZSCORE", KEYS[5], r.member) or 0)
if member[2] ~= r.was_dv or member[3] ~= r.was_sig then return { "differs" } end
if broker[1] ~= r.epoch or tonumber(broker[2]) ~= r.gen then return { "differs" } end
if now >= lease or (r.owner ~= "" and not member[4]) or not is_timeout(member[1]) then return { "differs" } end

local full = r.adds and limit_of_topics(r.limits, r.name, r.adds, false)
if full then return { "full", full } end
local ctx = { now = now, origin = r.origin, entries = {} }
emit(ctx, "broker_updated", "register", {
  "cluster", r.cluster, "broker", r.name, "id", "0", "addr", r.addr, "epoch", r.epoch,
  "group_cluster", broker[3] ~= r.cluster and broker[3], "dv", r.dv, "dv_before", r.was_dv,
})
emit_rows(ctx, 2, r.counts, { "cluster", r.cluster, "broker", r.name, "epoch", r.epoch, "dv", r.dv })
local orders = order_table(K.kv, K.order)
local last = append(ctx)
local gen = r.gen + (r.counts.rows + r.counts.mappings > 0 and 1 or 0)
if gen ~= r.gen then call("HSET", KEYS[2], "gen", gen) end
write_counted_rows(2, r.counts, r.name, r.epoch)
call("HSET", KEYS[3], "dv", r.dv, "sig", r.sig, "at", r.epoch .. ":" .. gen)
local ends = now + member[1]
call("ZADD", KEYS[5], ends, r.member)
call("SET", KEYS[4], ends, "PX", member[1])
return { "done", last, r.epoch, gen, { "", "" }, orders }
