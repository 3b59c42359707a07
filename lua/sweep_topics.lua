--[[  lua/sweep_topics.lua: deletes rows of past epochs, which the epoch rule hides already.
  KEYS[1] events:meta        hash    has the namespace
  KEYS[2] broker:<name>      hash    epoch
  KEYS[3] pending:<name>     string  epoch of a registration under way
  ARGV[1] broker name
  ARGV[2] "topics" or "mappings": which of its tables
  ARGV[3] how many of the names follow
  ARGV[4] topic, text as it was read, ...
  Returns how many were deleted  ]]
--- @include "counted"
local name, topics = ARGV[1], ARGV[2] == "topics"
local epoch, pending = redis.call("HGET", KEYS[2], "epoch"), redis.call("GET", KEYS[3])
local reverse = topics and K.topics_of(name) or K.mappings_of(name)
local deleted, fewer = 0, 0
for i = 4, 3 + 2 * ARGV[3], 2 do
  local topic, text = ARGV[i], ARGV[i + 1]
  local of = string.match(text, "^(%d+),")
  if of ~= epoch and of ~= pending then
    local key = topics and K.route(topic) or K.mapping(topic)
    if redis.call("HGET", key, name) == text then
      redis.call("HDEL", key, name)
      if topics and redis.call("EXISTS", key) == 0 then redis.call("SREM", K.topics, topic) end
    end
    if redis.call("HGET", reverse, topic) == text then fewer = fewer + redis.call("HDEL", reverse, topic) end
    deleted = deleted + 1
  end
end
if epoch then count_rows(name, ARGV[2], -fewer) end
return deleted
