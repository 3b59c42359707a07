--[[  lua/expire_members.lua: removes members whose lease is over, at most as many as requested; each lease is judged
  here.
  KEYS[1] events:meta  hash  incarnation, seq, holds
  KEYS[2] leases       zset  <cluster>:<addr> -> end (ms)
  ARGV[1] request as JSON: origin, limit
  Returns {event id, how many lapses, {broker name, ...}, 1 when more may be due}: the brokers that lost a member  ]]
--- @include "lapses"
local r = cjson.decode(ARGV[1])
local ctx = new_ctx(r.origin)
local held = ctx.hold_until and ctx.now < ctx.hold_until
local before = held and "(" .. string.format("%d", math.min(ctx.hold_from, ctx.now)) or ctx.now
local count, more = 0, 0
for _, key in ipairs(redis.call("ZRANGEBYSCORE", KEYS[2], "-inf", before, "LIMIT", 0, r.limit)) do
  local member = member_of(ctx, key)
  if lapsed(ctx, member.lease) then
    if count > 0 and enough(ctx, count) then
      more = 1
      break
    end
    if not member.exists then
      member.gone, member.dirty = true, true
    elseif not leave(ctx, member, "expired") then
      more = 1
      break
    end
    count = count + 1
  end
end
if count == r.limit then more = 1 end
return { commit(ctx), count, reduced_names(ctx), more }
