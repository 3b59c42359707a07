--- @include "damage"
--- @include "keys"
-- Limits of what tables may gain, checked before anything is written; each function returns the option whose limit
-- would be passed, or nil, and of a percentage what has it, as "topics from host 10.0.0.66".

local SAMPLE = 200

-- Whether one network would have more names under a key than it may. Only if there are more names than that, a sample of
-- them is read; `network_of` returns the network that a name came from.
local function over_percent(limits, network, key, more, limit, network_of)
  if not network or network == "" or limits.maxPercentOfHost >= 100 then return false end
  local most, count = limit * limits.maxPercentOfHost / 100, redis.call("SCARD", key)
  if count + more <= most then return false end
  local names, held = redis.call("SRANDMEMBER", key, SAMPLE), 0
  for _, name in ipairs(names) do
    if network_of(name) == network then held = held + 1 end
  end
  return held * count / math.max(#names, 1) + more > most
end

local function network_of_broker(name) return text_or_nil("HGET", K.broker(name), "network") end

-- One of the brokers of a topic stands for all: those of one host count in full, those of several by halves and so on.
local function network_of_topics()
  local known = {}
  return function(topic)
    local name = text_or_nil("HRANDFIELD", K.route(topic))
    if name and known[name] == nil then known[name] = network_of_broker(name) or false end
    return name and known[name]
  end
end

-- adds {broker, namespace, mappings}: topics new to the broker's table, how many of those may be new to the namespace,
-- and static topics new to the broker; network: of the first registration, nil of a broker that is there
local function limit_of_topics(limits, name, adds, first, network)
  if adds.broker <= 0 and adds.mappings <= 0 and adds.namespace <= 0 then return nil end
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
  if adds.namespace > 0 then
    network = network or network_of_broker(name)
    if over_percent(limits, network, K.topics, adds.namespace, limits.maxTopics, network_of_topics()) then
      return "maxPercentOfHost", "topics from host " .. network
    end
  end
end

local function limit_of_brokers(limits, network)
  if redis.call("SCARD", K.brokers) >= limits.maxBrokers then return "maxBrokers" end
  if over_percent(limits, network, K.brokers, 1, limits.maxBrokers, network_of_broker) then
    return "maxPercentOfHost", "brokers from host " .. network
  end
end
