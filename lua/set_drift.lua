--[[  lua/set_drift.lua: stores or deletes results of comparisons of name servers, if they are as its caller read them; an entry
  says so where a result is another one than before.
  KEYS[1] events:meta  hash  incarnation, seq
  KEYS[2] drift        hash  comparison -> its last result as JSON
  ARGV[1] request as JSON: origin, cause, fields of the entry {name, value, ...}, {} for no entry, rows, most, kept_ms. A row
          is {comparison, text before, text after}, "" = absent; most = how many comparisons there may be; kept_ms = after
          how long the key expires
  Returns the event id, "" without an entry; "changed" if a text is another one by now, "full" if there would be more
  comparisons than there may  ]]
--- @include "clock"
--- @include "emit"
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
local more = 0
for _, row in ipairs(r.rows) do
  local name, before, after = unpack(row)
  if (redis.call("HGET", KEYS[2], name) or "") ~= before then return "changed" end
  more = more + (after == "" and 0 or 1) - (before == "" and 0 or 1)
end
if more > 0 and redis.call("HLEN", KEYS[2]) + more > r.most then return "full" end
if #r.fields > 0 then emit(ctx, "drift_changed", r.cause, r.fields) end
local last = append(ctx)
for _, row in ipairs(r.rows) do
  local name, _, after = unpack(row)
  if after == "" then
    redis.call("HDEL", KEYS[2], name)
  else
    redis.call("HSET", KEYS[2], name, after)
  end
end
redis.call("PEXPIRE", KEYS[2], r.kept_ms)
return last
