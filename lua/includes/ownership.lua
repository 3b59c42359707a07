--- @include "connections"
--- @include "registrant"
--- @include "tables"
-- What is for the registrant of a living member. A request has its own registrant, home (the registrant that the host is
-- from which it comes), guard, and claims: 1 for a principal that may take what a host registered.

-- Whether a member has the very address of the host that asks, and another host registered it: else a stranger that is
-- there first, as while a broker restarts, would own that broker, or keep it away by another name.
local function comes_home(r, member)
  local registrant = member.fields.registrant
  if r.guard ~= 1 or not registrant or registrant == r.home or is_principal(registrant) then return false end
  if member.fields.mirrored then return false end -- that gives way to the broker, and leaves its topics
  return r.home == "host:" .. (string.match(address_of(member.key), "^(.*):%d+$") or "")
end

-- Whether a request may take a member's place, give it another one, or remove it.
local function may_take(r, member)
  local registrant = member.fields.registrant
  return r.guard ~= 1 or not registrant or registrant == r.registrant
    or (r.claims == 1 and not is_principal(registrant)) or comes_home(r, member)
    or (r.dv ~= nil and member.fields.mirrored ~= nil) -- a registration takes what a mirror has
end

-- The reply to one that may not: {cluster, address, end of the lease (ms), now, 1 with a connection, {host, ...}}.
local function owned_by(ctx, member)
  local living, hosts = connections_of(ctx, member.fields), {}
  for field, host in pairs(member.fields) do
    if string.sub(field, 1, 6) == "owner:" and is_text(host) then hosts[#hosts + 1] = host end
  end
  local host = string.match(member.fields.registrant or "", "^host:(.*)$")
  if host and is_text(host) then hosts[#hosts + 1] = host end
  return { "owned", {
    cluster_of(member.key), address_of(member.key), member.lease, ctx.now, #living > 0 and 1 or 0, hosts,
  } }
end
