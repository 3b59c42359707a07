--[[  lua/set_access.lua: changes tokens, what is revoked or what was reported, if they are as its caller read them; one entry
  says so.
  KEYS[1] events:meta     hash  incarnation, seq
  KEYS[2] access:tokens   hash  token id -> its record as JSON
  KEYS[3] access:revoked  hash  id of a credential or principal -> {"at_ms","by"}; "since" -> the entry of its first one, by
          which one that was deleted meanwhile is known
  KEYS[4] access:reported hash  "rules" -> those in force, "end:" and the id of a credential -> its end (ms)
  ARGV[1] request as JSON: origin, cause, fields of the entry {name, value, ...}, rows, most. A row is
          {"tokens", "revoked" or "reported", field, text before, text after}, "" = absent, "*" = any text; most = how
          many fields of {tokens, revoked, reported} there may be
  Returns the event id; "changed" if a text is another one by now, "full" if a key would have more fields than it may  ]]
--- @include "clock"
--- @include "emit"
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
local tables = { tokens = KEYS[2], revoked = KEYS[3], reported = KEYS[4] }
local more = { tokens = 0, revoked = 0, reported = 0 }
for _, row in ipairs(r.rows) do
  local name, field, before, after = unpack(row)
  local text = redis.call("HGET", tables[name], field)
  if before == "*" and not text or before ~= "*" and (text or "") ~= before then return "changed" end
  more[name] = more[name] + (after == "" and 0 or 1) - (before == "" and 0 or 1)
end
for name, key in pairs(tables) do
  if more[name] > 0 and redis.call("HLEN", key) + more[name] > r.most[name] then return "full" end
end
emit(ctx, "access_changed", r.cause, r.fields)
local last = append(ctx)
for _, row in ipairs(r.rows) do
  local name, field, _, after = unpack(row)
  if after == "" then
    redis.call("HDEL", tables[name], field)
  else
    redis.call("HSET", tables[name], field, after)
    if name == "revoked" and not redis.call("HGET", KEYS[3], "since") then redis.call("HSET", KEYS[3], "since", last) end
  end
end
return last
