--- @include "damage"
-- {"1", topic, value, ...}; {"0"} when the KV namespace does not exist, or is damaged: brokers keep the order topics that
-- they know, where an error would be one of every registration.
-- namespaces: key of the set of KV namespaces; values: key of the hash of ORDER_TOPIC_CONFIG
local function order_table(namespaces, values)
  if reply_or(0, "SISMEMBER", namespaces, "ORDER_TOPIC_CONFIG") == 0 then return { "0" } end
  local flat = reply_or(nil, "HGETALL", values)
  if not flat then return { "0" } end
  table.insert(flat, 1, "1")
  return flat
end
