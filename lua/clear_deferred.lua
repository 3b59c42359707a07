--[[  lua/clear_deferred.lua: deletes the note of a clean-up that is done, unless it was noted again meanwhile.
  KEYS[1] owed  hash  pending clean-up
  ARGV[1] note
  ARGV[2] its value as read before the clean-up
  Returns 1; 0 when it was noted again, or is deleted already  ]]
if redis.call("HGET", KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call("HDEL", KEYS[1], ARGV[1])
