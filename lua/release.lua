--[[  lua/release.lua: an operator ends the hold of leases, if there is one.
  KEYS[1] events:meta  hash  incarnation, seq, holds
  ARGV[1] request as JSON: act
  Returns {event id}  ]]
--- @include "release"
--- @include "tables"
local ctx = new_ctx(cjson.decode(ARGV[1]).act)
if not ctx.hold_until or ctx.now >= ctx.hold_until then return { "" } end
release(ctx)
return { commit(ctx) }
