--[[  lua/claim.lua: begins the chunked first registration of a broker: an epoch of its own, for a short while. Members
  whose lapse nobody has recorded yet go first, for the chunks may overwrite nothing that still counts.
  KEYS[1] events:meta     hash    incarnation, seq, holds
  KEYS[2] pending:<name>  string  the claim
  ARGV[1] request as JSON: act, name, hold (ms; each chunk renews it)
  Returns {"claimed", epoch, leftovers (1: rows of an earlier epoch are still stored)}; {"pending"} somebody else has
          claimed the name; {"changed", event id, broker name, ...} it had members; what is owed  ]]
--- @include "settle"
local r = cjson.decode(ARGV[1])
if redis.call("EXISTS", KEYS[2]) == 1 then return { "pending" } end
local ctx = new_ctx(r.act)
local broker = broker_of(ctx, r.name)
if broker.exists then
  settle(ctx, broker)
  return with_owed(ctx, { "changed", commit(ctx) })
end
local epoch = tostring(redis.call("INCR", K.epoch))
redis.call("SET", KEYS[2], epoch, "PX", r.hold)
owe(ctx, "clean", r.name, epoch)
return { "claimed", epoch, redis.call("EXISTS", K.topics_of(r.name), K.mappings_of(r.name)) > 0 and 1 or 0 }
