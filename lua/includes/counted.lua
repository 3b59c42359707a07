--- @include "keys"
-- How many rows `topics_of` and `mappings_of` of a broker should have is noted in its hash ("topics", "mappings"), so
-- that rows which are lost are missed (lua/repair_count.lua). The broker exists. A broker that an
-- older release registered has no count before a walk notes one: counting on from nothing would look like damage.
local function count_rows(name, table, more)
  if more ~= 0 and redis.call("HGET", K.broker(name), table) then
    redis.call("HINCRBY", K.broker(name), table, more)
  end
end
