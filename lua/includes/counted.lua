--- @include "keys"
-- How many rows `topics_of` and `mappings_of` of a broker should have is noted in its hash ("topics", "mappings"), so
-- that rows which are lost are missed (lua/repair_count.lua). The broker exists.
local function count_rows(name, table, more)
  if more ~= 0 then redis.call("HINCRBY", K.broker(name), table, more) end
end
