--- @include "keys"
-- Limits of what tables may gain, checked before anything is written; each function returns the option whose limit
-- would be passed, or nil.

-- adds {broker, namespace, mappings}: topics new to the broker's table, how many of those may be new to the namespace,
-- and static topics new to the broker
local function limit_of_topics(limits, name, adds, first)
  local most = limits.maxTopicsOfBroker
  -- Rows of an earlier epoch count for nothing, and lie in the same hashes until they are cleaned up.
  local alone = first or redis.call("HGET", K.owed, "clean:" .. name)
  local function over(more, limit, command, key)
    return more > 0 and (key and redis.call(command, key) or 0) + more > limit
  end
  if over(adds.broker, most, "HLEN", not alone and K.topics_of(name))
    or over(adds.mappings, most, "HLEN", not alone and K.mappings_of(name)) then
    return "maxTopicsOfBroker"
  end
  if over(adds.namespace, limits.maxTopics, "SCARD", K.topics) then return "maxTopics" end
end

local function limit_of_brokers(limits)
  if redis.call("SCARD", K.brokers) >= limits.maxBrokers then return "maxBrokers" end
end
