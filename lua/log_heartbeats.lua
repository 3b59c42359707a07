--[[  lua/log_heartbeats.lua: accepted heartbeats, any number at once: an entry for each place of their member.
  KEYS[1] heartbeats   stream
  and for each item:
  KEYS    member:<m>   hash    slot:<id>:<name> for each place
  ARGV    cluster, address, request code
  Returns for each how many entries; 0 of a member that has gone since  ]]
local MAXLEN = 1000000
local counts = {}
for i = 2, #KEYS do
  local places = {}
  for _, field in ipairs(redis.call("HKEYS", KEYS[i])) do
    if string.sub(field, 1, 5) == "slot:" then places[#places + 1] = field end
  end
  table.sort(places)
  for _, place in ipairs(places) do
    local id, name = string.match(place, "^slot:(%-?%d+):(.*)$")
    redis.call("XADD", KEYS[1], "MAXLEN", "~", MAXLEN, "*", "cluster", ARGV[3 * i - 5], "broker", name, "id", id,
      "addr", ARGV[3 * i - 4], "code", ARGV[3 * i - 3])
  end
  counts[i - 1] = #places
end
return counts
