--[[  lua/report_refusal.lua: reports a request about a broker that is refused, since its caller is not the owner or
  another member has what it takes, or was, if rules are only observed. Which refusals are reported, its caller knows.
  KEYS[1] events:meta  hash  incarnation, seq
  ARGV[1] request as JSON: origin, cause, action, cluster, broker, id, address, and holder {addr, cluster}: the member that it
          is about
  Returns event id  ]]
--- @include "clock"
--- @include "emit"
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
emit(ctx, "conflict_seen", r.cause, {
  "cluster", r.cluster, "broker", r.broker, "id", r.id, "addr", r.address, "action", r.action,
  "holder", cjson.encode(r.holder),
})
return append(ctx)
