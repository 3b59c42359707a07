--[[  lua/stage_slice.lua: one slice of a claimed first registration. No route shows it before the commit: its epoch
  is not yet the broker's.
  KEYS[1] events:meta     hash    has the namespace
  KEYS[2] pending:<name>  string  the claim
  ARGV[1] request as JSON: name, claim (epoch), ttl_ms
  ARGV[2] the slice, as lua/includes/rows.lua says, without entries: the commit emits them
  Returns 1; 0 when the claim is over  ]]
--- @include "rows"
local r = cjson.decode(ARGV[1])
if redis.call("GET", KEYS[2]) ~= r.claim then return 0 end
redis.call("PEXPIRE", KEYS[2], r.ttl_ms)
write_rows(slice_at(2), r.name, r.claim)
return 1
