--[[  lua/repair_count.lua: compares how many topics and mappings are stored of a broker with how many there should be.
  Rows that are lost from both sides only the broker knows: it is made to register its whole table.
  KEYS[1] events:meta    hash  incarnation, seq
  KEYS[2] broker:<name>  hash  the broker's entry
  ARGV[1] request as JSON: origin, name
  Returns {{repaired: brokers, members, topics, mappings}}  ]]
--- @include "repair"
local r = cjson.decode(ARGV[1])
local ctx = repair_ctx(r.origin)
local broker = broker_of(ctx, r.name)
if not broker.exists then return { counts_of(ctx) } end
local stored = {
  topics = redis.call("HLEN", K.topics_of(r.name)),
  mappings = redis.call("HLEN", K.mappings_of(r.name)),
}
local lost = 0
for which, rows in pairs(stored) do
  lost = lost + math.max((broker[which] or rows) - rows, 0)
end
if lost > 0 then
  forget_version(ctx, broker)
  mended(ctx, "brokers")
  emit_repaired(ctx, "brokers", { cjson.encode(r.name) })
  commit(ctx)
end
redis.call("HSET", KEYS[2], "topics", stored.topics, "mappings", stored.mappings)
return { counts_of(ctx) }
