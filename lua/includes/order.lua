-- {"1", topic, value, ...}; {"0"} when the KV namespace does not exist.
-- namespaces: key of the set of KV namespaces; values: key of the hash of ORDER_TOPIC_CONFIG
local function order_table(namespaces, values)
  if redis.call("SISMEMBER", namespaces, "ORDER_TOPIC_CONFIG") == 0 then return { "0" } end
  local flat = redis.call("HGETALL", values)
  table.insert(flat, 1, "1")
  return flat
end
