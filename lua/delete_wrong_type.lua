--[[  lua/delete_wrong_type.lua: deletes keys that have another type than they must
  KEYS[1]  events:meta  hash  incarnation, seq
  KEYS[2…] keys of one type
  ARGV[1]  request as JSON: origin, type (as TYPE replies it)
  Returns {deleted key, ...}  ]]
--- @include "repair"
local SHOWN = 50 -- keys of an entry
local r = cjson.decode(ARGV[1])
local deleted = {}
for i = 2, #KEYS do
  local stored = redis.call("TYPE", KEYS[i]).ok
  if stored ~= r.type and stored ~= "none" then deleted[#deleted + 1] = KEYS[i] end
end
if #deleted > 0 then
  for _, key in ipairs(deleted) do redis.call("DEL", key) end -- first: those of the stream itself may be among them
  local ctx, shown = repair_ctx(r.origin), {}
  for i = 1, math.min(#deleted, SHOWN) do
    if is_text(deleted[i]) then shown[#shown + 1] = deleted[i] end
  end
  emit_wrong_type(ctx, shown, #deleted)
  append(ctx)
end
return deleted
