--[[  lua/unregister.lua: removes an address from a broker (104), or a member from every table after its last
  connection closed. By address, not by id (RocketMQ 5.1 RouteInfoManager.unRegisterBroker).
  KEYS[1] events:meta  hash  incarnation, seq, holds
  KEYS[2] member:<m>   hash  the member named by cluster and address
  ARGV[1] request as JSON: origin, cause, member (<cluster>:<addr>), name and id (104 only), with the guard what
          lua/includes/ownership.lua says, as fences after a disconnect lease (its end then, ms) and closed_ms, and as that
          of a mirror: mirrored (the name servers that it reads)
  Returns {"owned", what lua/includes/ownership.lua says} where it is for another registrant; {event id, {broker name, ...}, 1 when the member has places left to leave}: the brokers that lost a member  ]]
--- @include "lapses"
--- @include "ownership"
local r = cjson.decode(ARGV[1])
local ctx = new_ctx(r.origin)
local member = member_of(ctx, r.member)

if r.lease then
  if not member.exists or member.lease ~= r.lease or #connections_of(ctx, member.fields) > 0 then
    return { "", {}, 0 }
  end
end

if r.mirrored and member.fields.mirrored ~= r.mirrored then return { "", {}, 0 } end

local more = 0

local function depart(member, only)
  local left
  if member.exists and lapsed(ctx, member.lease) then
    left = leave(ctx, member, "expired")
  else
    left = leave(ctx, member, r.cause, only, r.closed_ms)
  end
  if not left then more = 1 end
end

if r.name then
  local broker = broker_of(ctx, r.name)
  record_lapses(ctx, broker)
  local address, holder = address_of(r.member), broker.addrs[r.id or ""]
  local of_others = false
  for _, id in ipairs(sorted_ids(broker.addrs)) do
    local listed = member_of(ctx, broker.addrs[id])
    if not may_take(r, listed) then
      if address_of(listed.key) == address then return owned_by(ctx, listed) end
      of_others = true
    end
  end
  local found = false
  for _, id in ipairs(sorted_ids(broker.addrs)) do
    local key = broker.addrs[id]
    if key and address_of(key) == address then
      depart(member_of(ctx, key), r.name)
      found = true
    end
  end
  if member.exists and not member.gone then depart(member, r.name) end
  -- Java counts the group as reduced even when the address was not in it: without master it loses its write bits. With
  -- the guard not by a caller that may not take each of its members.
  if not found and broker.exists and not of_others then broker.reduced, broker.dirty = true, true end
  if not found and holder then
    emit(ctx, "conflict_seen", "stale_unregister", {
      "cluster", cluster_of(r.member), "broker", r.name, "id", r.id, "addr", address, "epoch", broker.epoch,
      "action", "refused", "holder", cjson.encode({ addr = address_of(holder), cluster = cluster_of(holder) }),
    })
  end
elseif member.exists then
  for _, place in ipairs(places_of(member)) do
    if not enough(ctx, 0) then record_lapses(ctx, broker_of(ctx, place.name)) end
  end
  depart(member)
end

return { commit(ctx), reduced_names(ctx), more }
