--[[  lua/release_hold.lua: ends the hold of leases, if there is one.
  KEYS[1] events:meta  hash  incarnation, seq, holds
  ARGV[1] request as JSON: origin
  Returns the event id, "" when there is no hold  ]]
--- @include "end_hold"
--- @include "tables"
local ctx = new_ctx(cjson.decode(ARGV[1]).origin)
if not ctx.hold_until or ctx.now >= ctx.hold_until then return "" end
end_hold(ctx)
return commit(ctx)
