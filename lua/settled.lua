--[[  lua/settled.lua: crosses off what was owed, unless it has come to be owed anew.
  KEYS[1] owed  hash  slices still to do
  ARGV[1] note
  ARGV[2] its value as it was read before the slices were done
  Returns 1; 0 when it is owed anew, or crossed off already  ]]
if redis.call("HGET", KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call("HDEL", KEYS[1], ARGV[1])
