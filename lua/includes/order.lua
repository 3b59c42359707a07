--- @include "keys"
-- {"1", topic, value, ...}; {"0"} when the KV namespace does not exist
local function order_table()
  if redis.call("SISMEMBER", K.kv, "ORDER_TOPIC_CONFIG") == 0 then return { "0" } end
  local flat = redis.call("HGETALL", K.kv_of("ORDER_TOPIC_CONFIG"))
  table.insert(flat, 1, "1")
  return flat
end
