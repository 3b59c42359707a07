-- The registrant of a member, in its hash: principal:<name>, or host:<address> it was registered from. With the option
-- ownershipGuard (guard 1 in a request) it is its owner (docs/access.md). One that an older release registered has none.
local function is_principal(registrant)
  return registrant and string.sub(registrant, 1, 10) == "principal:"
end

-- Whether a request may go on that only renews a member, or is about what its broker has: all but others' than the
-- principal's that registered it.
local function may_renew(r, registrant)
  return r.guard ~= 1 or registrant == r.registrant or not is_principal(registrant)
end
