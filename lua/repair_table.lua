--[[  lua/repair_table.lua: compares what is stored of some of a broker's topics, or mappings, with their routes.
  KEYS[1] events:meta  hash  incarnation, seq
  KEYS[2] topics       set   topic names
  ARGV[1] request as JSON: origin, name, table ("topics" or "mappings")
  ARGV[2] topics
  Returns {{topic that was in no list, ...}, {repaired: brokers, members, topics, mappings}}  ]]
--- @include "repair_rows"
local r = cjson.decode(ARGV[1])
local ctx = rows_ctx(r.origin)
local call, forward_of = redis.call, FORWARD[r.table]
local owner, topics, unlisted = owner_of(ctx, r.name), {}, {}
for i = 2, #ARGV do topics[i - 1] = ARGV[i] end
local reverse = call("HMGET", REVERSE[r.table](r.name), unpack(topics))
local listed = r.table == "topics" and call("SMISMEMBER", KEYS[2], unpack(topics)) or {}
for i, topic in ipairs(topics) do
  local forward, text = call("HGET", forward_of(topic), r.name), reverse[i]
  local current = is_current(owner, r.table, text)
  if current and listed[i] == 0 then
    unlisted[#unlisted + 1] = topic
    restore(ctx, r.table, owner, topic, text, forward, text)
  elseif (forward or text) and (forward ~= text or not current) then
    judge(ctx, r.table, owner, topic, forward, text)
  end
end
commit_rows(ctx)
return { unlisted, counts_of(ctx) }
