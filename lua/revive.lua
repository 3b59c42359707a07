--[[  lua/revive.lua: a beat (904, 322) of a member whose lease ran out but whose lapse nobody has recorded yet: it
  is recorded now, and the member is back under the same epoch.
  KEYS[1] events:meta  hash  incarnation, seq, holds
  KEYS[2] member:<m>   hash  what the member registered
  ARGV[1] request as JSON: act, member (<cluster>:<addr>)
  Returns {"unknown"}; {"renewed", data version, event id, broker name, ...}: what is owed  ]]
--- @include "settle"
local r = cjson.decode(ARGV[1])
local ctx = new_ctx(r.act)
local me = member_of(ctx, r.member)
if not me.exists then return { "unknown" } end
local slots = slots_of(me)
local over = lapsed(ctx, me.lease)
if over then
  leave(ctx, me, "expired")
  for _, slot in ipairs(slots) do settle(ctx, broker_of(ctx, slot.name)) end
  me.fields.since = tostring(ctx.now)
end
me.lease, me.dirty, me.gone = ctx.now + me.fields.timeout, true, false
if over then
  for _, slot in ipairs(slots) do
    local broker = broker_of(ctx, slot.name)
    if broker.exists and not broker.addrs[slot.id] then
      place(broker, slot.id, me.key)
      me.fields[slot.field] = "1"
      broker.gen, broker.dirty = broker.gen + 1, true
      emit(ctx, "broker_registered", "revive", {
        "cluster", cluster_of(me.key), "broker", slot.name, "id", slot.id, "addr", address_of(me.key),
        "group_cluster", broker.cluster ~= cluster_of(me.key) and broker.cluster,
        "epoch", broker.epoch, "addrs", addrs_json(broker), "ha", me.fields.ha or "",
        "timeout_ms", me.fields.timeout, "filters", me.fields.filters or false, "zone", broker.zone or false,
        "acting", broker.acting, "dv", me.fields.dv or false, "topics", redis.call("HLEN", K.topics_of(slot.name)),
      })
    end
  end
end
if #slots_of(me) == 0 then me.gone = true end
local last = commit(ctx)
return with_owed(ctx, { "renewed", me.fields.dv or "", last })
