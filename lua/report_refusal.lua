--[[  lua/report_refusal.lua: reports a request about a broker that is refused, since its caller is not the owner or
  another member has what it takes, or was, if rules are only observed. Which refusals are reported, its caller knows.
  KEYS[1] events:meta  hash  incarnation, seq
  ARGV[1] request as JSON: origin, cause, action, cluster, broker, id, address, and holder {addr, cluster}: the member that it
          is about
  Returns event id  ]]
--- @include "clock"
--- @include "emit"
local NOTED_MOST, NOTED_MS = 1000, 3600000 -- claims that the doctor can name, and for how long
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
emit(ctx, "conflict_seen", r.cause, {
  "cluster", r.cluster, "broker", r.broker, "id", r.id, "addr", r.address, "action", r.action,
  "holder", cjson.encode(r.holder),
})
local last = append(ctx)

-- The doctor names what is refused still: a broker repeats it, and it is reported each minute.
local function note()
  local past = string.format("(%.0f", ctx.now - NOTED_MS)
  reply_or(0, "ZREMRANGEBYSCORE", K.refused, "-inf", past)
  if reply_or(0, "ZCARD", K.refused) >= NOTED_MOST then return end
  local claimed = cjson.encode({ r.cluster, r.broker, r.id, r.address, r.cause, r.holder.addr })
  overwrite("ZADD", K.refused, ctx.now, claimed)
  redis.call("PEXPIRE", K.refused, NOTED_MS)
end
if r.action == "refused" then note() end
return last
