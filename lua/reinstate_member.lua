--[[  lua/reinstate_member.lua: a heartbeat (904, 322) of a member whose lease ran out but whose lapse is not recorded
  yet: it is recorded now, and the member is back under the same epoch.
  KEYS[1] events:meta  hash  incarnation, seq, holds
  KEYS[2] member:<m>   hash  what the member registered
  ARGV[1] request as JSON: origin, member (<cluster>:<addr>), with the guard what lua/includes/ownership.lua says
  Returns {"unknown"}; {"owned", broker name, id} of a principal's; {"renewed", data version, event id, {broker name, ...}}: those with a clean-up that
          was deferred  ]]
--- @include "lapses"
--- @include "registered"
--- @include "registrant"
local r = cjson.decode(ARGV[1])
local ctx = new_ctx(r.origin)
local member = member_of(ctx, r.member)
if not member.exists or member.fields.mirrored then return { "unknown" } end
if not may_renew(r, member.fields.registrant) then
  return { "owned", member.fields.broker or "", member.fields.id or "" }
end
local places = places_of(member)
local over = lapsed(ctx, member.lease)
if over then
  ctx.work = 400 -- each place is left and entered
  leave(ctx, member, "expired")
  for _, place in ipairs(places) do
    if not enough(ctx, 0) then record_lapses(ctx, broker_of(ctx, place.name)) end
  end
  member.fields.since = tostring(ctx.now)
end
member.lease, member.dirty, member.gone = ctx.now + member.fields.timeout, true, false
if over then
  for _, place in ipairs(places) do
    local broker = broker_of(ctx, place.name)
    local left = not member.fields[place.field] -- the others had no time to: they stay as if nothing had been
    if left and broker.exists and not broker.addrs[place.id] then
      set_member(broker, place.id, member.key)
      member.fields[place.field] = "1"
      broker.gen, broker.dirty = broker.gen + 1, true
      emit_registered(ctx, broker, member, place.id, "revive", redis.call("HLEN", K.topics_of(place.name)), false)
    end
  end
end
if #places_of(member) == 0 then member.gone = true end
local last = commit(ctx)
return { "renewed", member.fields.dv or "", last, deferred_names(ctx) }
