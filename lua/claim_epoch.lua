--[[  lua/claim_epoch.lua: begins a first registration in several scripts: claims an epoch for a short while. Members
  whose lapse is not recorded yet are removed first, for the slices may overwrite nothing that still counts.
  KEYS[1] events:meta     hash    incarnation, seq, holds
  KEYS[2] pending:<name>  string  the claim
  ARGV[1] request as JSON: origin, name, ttl_ms (each slice renews it), limits, adds (lua/includes/growth.lua),
          network (as lua/register.lua)
  Returns {"claimed", epoch, leftovers (1: rows of an earlier epoch are still stored)}; {"pending"} another registration
          has claimed the name; {"full", option, what (of a percentage)} it would grow
          beyond a limit; {"again", event id, {broker name, ...}} it had
          members; the names are those with a clean-up that was deferred  ]]
--- @include "growth"
--- @include "lapses"
local r = cjson.decode(ARGV[1])
if redis.call("EXISTS", KEYS[2]) == 1 then return { "pending" } end
local ctx = new_ctx(r.origin)
local broker = broker_of(ctx, r.name)
if broker.exists then
  record_lapses(ctx, broker)
  return { "again", commit(ctx), deferred_names(ctx) }
end
local full, what = limit_of_brokers(r.limits, r.network)
if not full then full, what = limit_of_topics(r.limits, r.name, r.adds, true, r.network or "") end
if full then return { "full", full, what } end
local epoch = tostring(redis.call("INCR", K.epoch))
redis.call("SET", KEYS[2], epoch, "PX", r.ttl_ms)
defer(ctx, "clean", r.name, epoch)
return { "claimed", epoch, redis.call("EXISTS", K.topics_of(r.name), K.mappings_of(r.name)) > 0 and 1 or 0 }
