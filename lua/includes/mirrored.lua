-- What a mirror of other name servers registered has the field mirrored: which name servers these are. It gives way to
-- every registration of a broker's own, and takes nothing of one (docs/decisions/0021-mirrored-members.md).

-- The living member that a mirror's registration would take from its broker, or from another mirror; nil without one.
-- living: whether `member`, the one that is registered, is there.
local function in_mirrors_way(ctx, r, broker, member, living)
  if living and not member.fields.mirrored then return member end
  for _, id in ipairs(sorted_ids(broker.addrs)) do
    local key = broker.addrs[id]
    if key ~= member.key and (id == r.id or address_of(key) == address_of(member.key)) then
      local other = member_of(ctx, key)
      if other.fields.mirrored ~= r.mirrored then return other end
    end
  end
end

-- Whether a broker has a member that registered itself, beside the one of this key.
local function has_own_member(ctx, broker, except)
  for _, key in pairs(broker.addrs) do
    if key ~= except and not member_of(ctx, key).fields.mirrored then return true end
  end
  return false
end
