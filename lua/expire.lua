--[[  lua/expire.lua: makes lapses physical, at most as many as asked for; fenced by judging each lease here.
  KEYS[1] events:meta  hash  incarnation, seq, holds
  KEYS[2] leases       zset  <cluster>:<addr> -> end (ms)
  ARGV[1] request as JSON: act, limit
  Returns {event id, members settled, broker name, ...}: the brokers that lost a member  ]]
--- @include "settle"
local r = cjson.decode(ARGV[1])
local ctx = new_ctx(r.act)
local held = ctx.hold_until and ctx.now < ctx.hold_until
local before = held and "(" .. string.format("%d", math.min(ctx.hold_from, ctx.now)) or ctx.now
local count = 0
for _, key in ipairs(redis.call("ZRANGEBYSCORE", KEYS[2], "-inf", before, "LIMIT", 0, r.limit)) do
  local member = member_of(ctx, key)
  if lapsed(ctx, member.lease) then
    if member.exists then leave(ctx, member, "expired") else member.gone, member.dirty = true, true end
    count = count + 1
  end
end
local reply = { commit(ctx), count }
for name, broker in pairs(ctx.brokers) do
  if broker.reduced then reply[#reply + 1] = name end
end
return reply
