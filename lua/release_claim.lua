--[[  lua/release_claim.lua: releases the claim of the walk, unless another process has it
  KEYS[1] repair:walker  string  the process that walks
  ARGV[1] the process that ends
  Returns 1; 0 when it had not the claim  ]]
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("DEL", KEYS[1])
