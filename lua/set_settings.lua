--[[  lua/set_settings.lua: sets the configuration shared by all workers, by 318 or by a start. A start writes a value
  only if it differs from what the last start gave, so that a restart does not undo 318.
  KEYS[1] events:meta     hash  incarnation, seq
  KEYS[2] settings        hash  option -> value
  KEYS[3] settings:given  hash  option -> what the last start gave
  ARGV[1] request as JSON: origin, cause ("update" or "start"), values, each [option, value], hidden {option: 1, ...}
  Returns the event id, "" when nothing changed  ]]
--- @include "clock"
--- @include "emit"
local r = cjson.decode(ARGV[1])
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
local writes, given, changes = {}, {}, {}
for _, pair in ipairs(r.values) do
  local option, value = pair[1], pair[2]
  local before = redis.call("HGET", KEYS[2], option)
  local asked = true
  if r.cause == "start" then
    asked = redis.call("HGET", KEYS[3], option) ~= value
    given[#given + 1], given[#given + 2] = option, value
  end
  if asked and before ~= value then
    local secret = r.hidden and r.hidden[option]
    writes[#writes + 1], writes[#writes + 2] = option, value
    changes[#changes + 1] = string.format("%s:[%s,%s]", cjson.encode(option),
      before and (secret and '"***"' or cjson.encode(before)) or "null", secret and '"***"' or cjson.encode(value))
  end
end
if #changes > 0 then
  emit(ctx, "settings_changed", r.cause, { "changes", "{" .. table.concat(changes, ",") .. "}" })
end
local last = append(ctx)
if #writes > 0 then redis.call("HSET", KEYS[2], unpack(writes)) end
if #given > 0 then redis.call("HSET", KEYS[3], unpack(given)) end
return last
