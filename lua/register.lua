--[[  lua/register.lua: one registration of a member (RocketMQ 5.x RouteInfoManager.registerBroker), decided and
  written at once. Called with dry = 1 it only decides; the token of that decision comes back with the write and must
  still hold, else nothing is written and the new decision is returned.
  KEYS[1] events:meta     hash    incarnation, seq, holds
  KEYS[2] broker:<name>   hash    the broker's entry
  KEYS[3] member:<m>      hash    what this member registered last
  KEYS[4] pending:<name>  string  epoch claimed by a first registration in several scripts
  ARGV[1] request as JSON: origin {op, actor, peer}, name, cluster, id, member (<cluster>:<addr>), ha, zone, acting
          ("0", "1", or absent from an old broker), timeout, filters (JSON text; absent = leave alone), dv, state
          (version, a number), single (1: one topic, refused in a first registration), sig, owner and the host that it
          came from, network (that host, an IPv6 one with its neighbours), registrant, home, guard, observes and claims
          (lua/includes/ownership.lua), exclusive (1: what a living member has is not taken), mirrored (of a mirror: the
          name servers that it reads), dry, limits, and for the write: token, claim
          (epoch), leftovers (as the claim said), applied, last (0: slices follow, so the data version waits), adds
          (lua/includes/growth.lua; of all slices)
  ARGV[2] the slice, as lua/includes/rows.lua says; not when dry
  Returns {"refused", event id, order table} newcomer of a lower state version; {"single"}, {"pending"};
          {"owned", what lua/includes/ownership.lua says} it is for the registrant of a living member;
          {"own", cluster, address, name servers or ""} of a mirror: that living member registered itself, or another
          mirror did;
          {"conflict", "two_addresses" or "two_clusters", the same} another living member has the id, or the name is its
          cluster's, and exclusive;
          {"full", option, what (of a percentage)} it would grow beyond a limit;
          {"lost"} the claim is over; {"again", event id, {broker name, ...}} as many lapses as a script may take were
          recorded first, dry or not;
          {"go", token, epoch, generation, first, changed, writes, strips, same} a decision;
          {"done", event id, epoch, generation, {master, ha}, order table, {broker name, ...}, entered}
          The broker names are those with a clean-up that was deferred; entered: "1" if the member was not there  ]]
--- @include "growth"
--- @include "lapses"
--- @include "master"
--- @include "mirrored"
--- @include "order"
--- @include "ownership"
--- @include "registered"
--- @include "rows"
local NAMES_SHOWN, CLAIM_MS = 16, 2000
local r = cjson.decode(ARGV[1])
local ctx = new_ctx(r.origin)
local name, key, id = r.name, r.member, r.id
local place_field = "slot:" .. id .. ":" .. name

local claimed = redis.call("GET", KEYS[4])
if claimed and claimed ~= r.claim then
  redis.call("PEXPIRE", KEYS[4], CLAIM_MS, "LT") -- one without an end, which is damage, ends
  return { "pending" }
end
if r.claim and not claimed then return { "lost" } end

local broker, member = broker_of(ctx, name), member_of(ctx, key)
local token_of_state = (broker.epoch or "") .. ":" .. broker.gen
local before = { acting = broker.acting or "0", zone = broker.zone }
local stored = {
  dv = member.exists and member.fields.dv, at = member.fields.at, sig = member.fields.sig,
  applied = member.fields.applied,
}

-- A member that registers after its own lease ran out comes back to the same epoch; its topics stay.
local lapses, more = record_lapses(ctx, broker, key)
if more then return { "again", commit(ctx), deferred_names(ctx) } end
local living = member.exists and not lapsed(ctx, member.lease)
local reinstated = member.exists and broker.addrs[id] == key and not living
if member.exists and not living then
  if not leave(ctx, member, "expired") then return { "again", commit(ctx), deferred_names(ctx) } end
  member.gone, member.fields.since, member.fields.registrant = false, nil, nil
end

-- A mirror changes nothing of what registered itself, not even the lapses that this script would record.
if r.mirrored then
  local own = in_mirrors_way(ctx, r, broker, member, living)
  if own then
    if r.claim then redis.call("DEL", KEYS[4]) end
    return { "own", cluster_of(own.key), address_of(own.key), own.fields.mirrored or "" }
  end
end
local was_mirrored = member.fields.mirrored

-- What strangers registered at this host's own address is nothing of the broker's: that begins anew.
local at_home = r.observes ~= 1 and { member } or {}
for _, other in ipairs(r.observes ~= 1 and sorted_ids(broker.addrs) or {}) do
  if address_of(broker.addrs[other]) == address_of(key) then at_home[#at_home + 1] = member_of(ctx, broker.addrs[other]) end
end
for _, of_stranger in ipairs(at_home) do
  if comes_home(r, of_stranger) then
    if not leave(ctx, of_stranger, "replaced") then return { "again", commit(ctx), deferred_names(ctx) } end
    if of_stranger == member then living, stored, member.gone, member.fields = false, {}, false, {} end
  end
end

-- A principal claims a host's member where its limits name the broker: none that has another name too, which they may not.
if living and r.claims == 1 and not is_principal(member.fields.registrant) then
  for _, place in ipairs(places_of(member)) do
    if place.name ~= name then r.claims = 0 end
  end
end

-- Where hosts have filled the broker, a principal that claims it takes them out, as many as one script may: else they could
-- keep it away.
local function is_full_of_others()
  local members, clusters = 0, 0
  for _ in pairs(broker.addrs) do members = members + 1 end
  for _ in pairs(broker.clusters) do clusters = clusters + 1 end
  return not broker.addrs[id] and members >= r.limits.maxMembersOfBroker
    or not broker.clusters[r.cluster] and clusters >= r.limits.maxClustersOfBroker
end
if r.guard == 1 and r.claims == 1 and r.observes ~= 1 and is_full_of_others() then
  for count, other in ipairs(sorted_ids(broker.addrs)) do
    local of_host = member_of(ctx, broker.addrs[other])
    if of_host ~= member and not is_principal(of_host.fields.registrant) then
      leave(ctx, of_host, "replaced", name)
      if enough(ctx, count) then return { "again", commit(ctx), deferred_names(ctx) } end
    end
  end
end
local first = next(broker.addrs) == nil and not reinstated

-- The same address under another id of the group: the switch of slave and master.
local switched
local displaced = {} -- other members, whose place this one takes
for _, other in ipairs(sorted_ids(broker.addrs)) do
  if other ~= id and address_of(broker.addrs[other]) == address_of(key) then
    local previous = member_of(ctx, broker.addrs[other])
    if previous.key ~= key then displaced[#displaced + 1] = previous end
    vacate(ctx, previous, { field = "slot:" .. other .. ":" .. name, id = other, name = name }, "switched")
    if #places_of(previous) == 0 and previous.key ~= key then previous.gone = true end
    switched = true
  end
end

local holder = broker.addrs[id]
local takes_over = holder and holder ~= key
local outranks -- by its state version, as a master that a controller has elected
if takes_over then
  -- As Java does: by what the holder's address registered in the newcomer's cluster.
  local rival = member_of(ctx, string.match(key, "^[^:]*:") .. address_of(holder))
  local state = tonumber(string.match(rival.fields.dv or "", "^(%d+):") or 0)
  outranks = r.state > state
  -- But a principal takes its broker's name from a host, which could say any version.
  local claims = r.guard == 1 and r.claims == 1 and not is_principal(member_of(ctx, holder).fields.registrant)
  if address_of(holder) ~= address_of(key) and state > r.state and not claims and not lapsed(ctx, rival.lease) then
    -- The refused newcomer changes nothing, not even the lapses that this script would record.
    local refusal = { now = ctx.now, origin = r.origin, entries = {} }
    emit(refusal, "conflict_seen", "state_version", {
      "cluster", r.cluster, "broker", name, "id", id, "addr", address_of(key), "action", "refused",
      "holder", cjson.encode({ addr = address_of(holder), cluster = cluster_of(holder) }),
    })
    local orders = order_table(K.kv, K.order)
    return { "refused", r.dry == 1 and "" or append(refusal), orders }
  end
end

local fresh_place = not holder and not reinstated
if fresh_place and r.single == 1 then return { "single" } end

-- With the guard a member beside another's living master changes nothing of the group: any host may have a free id, also
-- one below 0. Nor does what is mirrored beside what registered itself.
local master_key = id ~= "0" and r.guard == 1 and broker.addrs["0"]
local is_stranger = master_key and not may_take(r, member_of(ctx, master_key))
local guest = is_stranger and r.observes ~= 1 or r.mirrored and has_own_member(ctx, broker, key)

-- The member is another's, and this only renews it: with the guard that brings its end no nearer.
local renews_others = living and r.guard == 1 and r.observes ~= 1 and not may_take(r, member)
local keeps_timeout = renews_others and tonumber(member.fields.timeout) > r.timeout
if keeps_timeout then r.timeout = tonumber(member.fields.timeout) end

-- The living member in the way of a request that is not its registrant's.
local function in_the_way()
  if is_stranger and not broker.clusters[r.cluster] then return member_of(ctx, master_key) end
  if living then
    local renews = member.fields[place_field]
    if not (renews and may_renew(r, member.fields.registrant) or may_take(r, member)) then return member end
  end
  if takes_over then displaced[#displaced + 1] = member_of(ctx, holder) end
  for _, other in ipairs(displaced) do
    if not may_take(r, other) then return other end
  end
end
local blocking = in_the_way()
if blocking then
  if r.claim then redis.call("DEL", KEYS[4]) end
  return owned_by(ctx, blocking)
end

-- What another living address has of what this one would take, and that member. A principal takes from hosts what its
-- limits name, as above.
local function conflict()
  local function is_in_the_way(other)
    local fields = member_of(ctx, other).fields
    local taken = fields.mirrored or r.guard == 1 and r.claims == 1 and not is_principal(fields.registrant)
    return address_of(other) ~= address_of(key) and not taken
  end
  if takes_over and not outranks and is_in_the_way(holder) then return "two_addresses", holder end
  if broker.clusters[r.cluster] then return end
  for _, other in ipairs(sorted_ids(broker.addrs)) do
    if is_in_the_way(broker.addrs[other]) then return "two_clusters", broker.addrs[other] end
  end
end
if r.exclusive == 1 then
  local cause, other = conflict()
  if cause then
    if r.claim then redis.call("DEL", KEYS[4]) end
    return { "conflict", cause, owned_by(ctx, member_of(ctx, other))[2] }
  end
end

-- Nothing is written yet. What is there already may be more than the limits, which may have been lowered.
local others = {}
for _, place in ipairs(places_of(member)) do
  if place.name ~= name then others[#others + 1] = place.name end
end
local function bytes_of_broker()
  local bytes = #r.cluster + #r.cluster + #key
  for _, other in pairs(broker.addrs) do bytes = bytes + #other end
  for cluster in pairs(broker.clusters) do bytes = bytes + #cluster end
  return bytes
end

local function limit_reached()
  local limits = r.limits
  local new_cluster = first or not broker.clusters[r.cluster]
  if (fresh_place or new_cluster) and bytes_of_broker() > limits.maxEntryBytes then return "maxEntryBytes" end
  local new_name = not reinstated and not member.fields[place_field]
  if new_name and #name + #table.concat(others) > limits.maxEntryBytes then
    return "maxEntryBytes"
  end
  if fresh_place and #sorted_ids(broker.addrs) >= limits.maxMembersOfBroker then return "maxMembersOfBroker" end
  if new_name and #others >= limits.maxNamesOfMember then return "maxNamesOfMember" end
  if first and not broker.exists then
    local full, what = limit_of_brokers(limits, r.network)
    if full then return full, what end
  end
  if new_cluster and not first then
    local count = 0
    for _ in pairs(broker.clusters) do count = count + 1 end
    if count >= limits.maxClustersOfBroker then return "maxClustersOfBroker" end
  end
end
local full, what = limit_reached()
if full then
  if r.claim then redis.call("DEL", KEYS[4]) end
  return { "full", full, what }
end

-- The master writes the group's topics, or the smallest id of a new group; and which of them.
local smallest = true
for other in pairs(broker.addrs) do
  if tonumber(other) < tonumber(id) then smallest = false end
end
local prime = r.acting ~= nil and id ~= "0" and smallest and not guest
local writes = id == "0" or prime
-- No version stands for what a mirror read: it counts as changed, and so does what replaces it.
local changed = not stored.dv or stored.dv ~= r.dv or r.mirrored or was_mirrored
local every = first or fresh_place or changed
local same = stored.applied == "1" and stored.sig == r.sig and stored.at == token_of_state and lapses == 0 and not first
local strips = prime and r.acting == "1"
local function flag(condition) return condition and "1" or "0" end
local token = table.concat({ token_of_state, lapses, flag(first), flag(every), flag(writes), flag(strips) }, ";")
if r.dry == 1 or token ~= r.token then
  if r.claim then redis.call("DEL", KEYS[4]) end
  return { "go", token, first and "" or broker.epoch, broker.gen, flag(first), flag(every), flag(writes),
    flag(strips), flag(same) }
end

if not r.claim then
  full, what = limit_of_topics(r.limits, name, r.adds, first, first and (r.network or "") or broker.network)
  if full then return { "full", full, what } end
end

-- The host that is a registrant, nil of a principal, and whether the member's address is its own.
local function host_of(registrant)
  local host = string.match(registrant or "", "^host:(.*)$")
  return host, host and host == string.match(address_of(key), "^(.*):%d+$")
end

-- Notes a connection over which the member registered. Connections of dead workers go; another one goes where there
-- would be too many, since a refusal would lock out the member itself: the registrant's last, since the member goes with
-- the last one. With the guard another's beside a host's own address is none of the member's.
local function note_owner(fields, owner, host)
  local home, is_own = host_of(fields.registrant)
  if renews_others and is_own then return end
  local others, dead = connections_of(ctx, fields)
  for _, field in ipairs(dead) do fields[field] = nil end
  local kept = {}
  for _, field in ipairs(others) do
    if field ~= owner then kept[#kept + 1] = field end
  end
  table.sort(kept, function(a, b)
    local a_stays, b_stays = fields[a] == home, fields[b] == home
    if a_stays ~= b_stays then return b_stays end
    return a < b
  end)
  for i = 1, #kept - r.limits.maxOwnersOfMember + 1 do fields[kept[i]] = nil end
  fields[owner] = host
end

-- Another host becomes the registrant once none of the last one's connections is left: by renewing what it may not take, it
-- could take it with its next request. A host's own address stays its own: its connections end with a worker, too.
local function next_registrant(fields)
  local last = fields.registrant
  if not last or last == r.registrant then return r.registrant end
  if is_principal(r.registrant) then return (r.guard ~= 1 or r.claims == 1) and r.registrant or last end
  local host, is_own = host_of(last)
  if is_own then return last end
  for _, field in ipairs((connections_of(ctx, fields))) do
    if fields[field] == host then return last end
  end
  return r.registrant
end

-- Decided: what the broker and the member become.
local cause = first and "first" or reinstated and "revive" or takes_over and "takeover" or switched and "switch"
  or "join"
local written_by = "register"
if r.mirrored then cause, written_by = "mirror", "mirror" end
local enters = first or reinstated or fresh_place or takes_over
if takes_over then
  local other = member_of(ctx, holder)
  vacate(ctx, other, { field = place_field, id = id, name = name }, "replaced")
  if #places_of(other) == 0 then other.gone = true end
end
if first then
  broker.epoch, broker.gen = r.claim or tostring(redis.call("INCR", K.epoch)), 0
  broker.cluster, broker.clusters, broker.network = r.cluster, {}, r.network
  if r.claim then
    ctx.leftovers = r.leftovers == 1
  else
    ctx.leftovers = redis.call("EXISTS", K.topics_of(name), K.mappings_of(name)) > 0
  end
end
if not broker.clusters[r.cluster] then
  if next(broker.clusters) then
    emit(ctx, "conflict_seen", "two_clusters", {
      "cluster", r.cluster, "broker", name, "id", id, "addr", address_of(key), "action", "accepted",
      "holder", cjson.encode({ cluster = broker.cluster }),
    })
  end
  broker.clusters[r.cluster] = true
end
if enters and #others > 0 then
  local several = #others > 1
  emit(ctx, "conflict_seen", "two_names", {
    "cluster", r.cluster, "broker", name, "id", id, "addr", address_of(key), "action", "accepted",
    "holder", cjson.encode({ broker = others[1], brokers = several and { unpack(others, 1, NAMES_SHOWN) } or nil }),
    "count", several and #others,
  })
end
set_member(broker, id, key)
if not guest then broker.acting, broker.zone = r.acting == "1" and "1" or "0", r.zone end
broker.dirty = true
-- The last registration decides the attributes of the group: an earlier one, sent again, is no short cut then.
local attributes_differ = broker.acting ~= before.acting or broker.zone ~= before.zone
local slice = slice_at(2)
if enters or attributes_differ or slice.writes then broker.gen = broker.gen + 1 end

local fields = member.fields
local was = { ha = fields.ha or "", timeout = fields.timeout or "", filters = fields.filters or "[]" }
fields.broker, fields.id, fields[place_field] = name, id, "1"
fields.ha, fields.timeout = r.ha, tostring(r.timeout)
if r.filters then fields.filters = r.filters ~= "[]" and r.filters or nil end
fields.since = fields.since or tostring(ctx.now)
if r.last == 1 then
  -- Sent again it may be its registrant's, and is no short cut then: that one has the timeout that it asks for.
  fields.dv, fields.sig, fields.applied = r.dv, not keeps_timeout and r.sig or nil, tostring(r.applied)
  fields.at = broker.epoch .. ":" .. broker.gen
else
  fields.sig, fields.applied = nil, nil
  if fields.dv == r.dv then fields.dv = nil end -- the same version must count as changed until all is written
end
if was_mirrored and not r.mirrored then fields.registrant = nil end
fields.registrant, fields.mirrored = next_registrant(fields), r.mirrored
if r.owner then note_owner(fields, "owner:" .. r.owner, r.host or "") end
member.lease, member.dirty, member.gone = ctx.now + r.timeout, true, false

-- Filter servers are the member's, so they show under its other names too.
local function other_names()
  local names = {}
  for _, other in ipairs(places_of(member)) do
    if other.name ~= name then names[#names + 1] = other.name end
  end
  return #names > 0 and cjson.encode(names)
end
local also = (fields.filters or "[]") ~= was.filters and other_names()
local group_cluster, changes = broker.cluster ~= r.cluster and broker.cluster, {}
if enters then
  emit_registered(ctx, broker, member, id, cause, first and 0 or redis.call("HLEN", K.topics_of(name)), also)
else
  local function differs(field, old, new)
    if old == new then return end
    for _, text in ipairs({ field, new, field .. "_before", old }) do changes[#changes + 1] = text end
  end
  differs("ha", was.ha, fields.ha or "")
  differs("timeout_ms", was.timeout, fields.timeout)
  differs("filters", was.filters, fields.filters or "[]")
  differs("zone", before.zone or "", broker.zone or "")
  differs("acting", before.acting, broker.acting)
  differs("mirrored", was_mirrored or "", fields.mirrored or "")
  differs("dv", stored.dv or "", fields.dv or "")
end
if changes[1] == "dv" and r.last == 1 then -- and nothing else, which stands before it
  emit_version(ctx, slice, {
    "cluster", r.cluster, "broker", name, "id", id, "addr", address_of(key), "epoch", broker.epoch, "dv", r.dv,
  }, group_cluster, stored.dv or "")
else
  if changes[1] then
    emit(ctx, "broker_updated", written_by, {
      "cluster", r.cluster, "broker", name, "id", id, "addr", address_of(key), "epoch", broker.epoch,
      "group_cluster", group_cluster, "also", also,
    }, changes)
  end
  emit_rows(ctx, slice, {
    "cluster", r.cluster, "broker", name, "epoch", broker.epoch, "dv", r.last == 1 and r.dv,
  })
end

-- Read before anything is written: of a damaged key an error comes then.
local master, orders = master_of(ctx, broker, id), order_table(K.kv, K.order)
local last = commit(ctx)
if ctx.leftovers then
  defer(ctx, "clean", name, last)
elseif r.claim and redis.call("HGET", K.owed, "clean:" .. name) == r.claim then
  redis.call("HDEL", K.owed, "clean:" .. name) -- the claim's own note, for a claim that runs out
end
if r.claim then
  redis.call("DEL", KEYS[4])
else
  write_counted_rows(slice, name, broker.epoch)
end
if first then -- slices of a claim, and rows of an earlier epoch that are still there, count too
  redis.call("HSET", KEYS[2], "topics", overwrite("HLEN", K.topics_of(name)),
    "mappings", overwrite("HLEN", K.mappings_of(name)))
end
return { "done", last, broker.epoch, broker.gen, master, orders, deferred_names(ctx), flag(enters) }
