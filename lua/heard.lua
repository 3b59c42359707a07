--[[  lua/heard.lua: beats that were accepted, any number at once: an entry for each place that their member has.
  KEYS[1] heartbeats   stream
  and for each item:
  KEYS    member:<m>   hash    slot:<id>:<name> for each place
  ARGV    cluster, address, request code
  Returns for each how many entries; 0 of a member that has gone since  ]]
local MAXLEN = 1000000
local counts = {}
for i = 2, #KEYS do
  local slots = {}
  for _, field in ipairs(redis.call("HKEYS", KEYS[i])) do
    if string.sub(field, 1, 5) == "slot:" then slots[#slots + 1] = field end
  end
  table.sort(slots)
  for _, slot in ipairs(slots) do
    local id, name = string.match(slot, "^slot:(%-?%d+):(.*)$")
    redis.call("XADD", KEYS[1], "MAXLEN", "~", MAXLEN, "*", "cluster", ARGV[3 * i - 5], "broker", name, "id", id,
      "addr", ARGV[3 * i - 4], "code", ARGV[3 * i - 3])
  end
  counts[i - 1] = #slots
end
return counts
