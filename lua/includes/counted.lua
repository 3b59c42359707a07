--- @include "keys"
-- How many rows `topics_of` and `mappings_of` of a broker should have is noted in its hash ("topics", "mappings"), so
-- that rows which are lost are missed (lua/repair_count.lua). The broker exists. Where nothing is noted, because an older
-- release registered it, a walk does so: what was counted on from nothing would be damage.
local function count_rows(name, table, more)
  if more ~= 0 and redis.call("HGET", K.broker(name), table) then
    redis.call("HINCRBY", K.broker(name), table, more)
  end
end
