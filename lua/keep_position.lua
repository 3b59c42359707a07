--[[  lua/keep_position.lua: the position of the process that has the claim of the walk; renews the claim
  KEYS[1] repair:walker     string  the process that walks
  KEYS[2] events:consumers  hash    consumer -> its position as JSON
  ARGV[1] the process that asks
  ARGV[2] ms for which its claim is renewed
  ARGV[3] the consumer
  ARGV[4] the position to write, "" to write none
  Returns {1, position, "" where there is none}; {0} without a write when the process has not the claim  ]]
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return { 0 } end
redis.call("PEXPIRE", KEYS[1], ARGV[2])
if ARGV[4] ~= "" then redis.call("HSET", KEYS[2], ARGV[3], ARGV[4]) end
return { 1, redis.call("HGET", KEYS[2], ARGV[3]) or "" }
