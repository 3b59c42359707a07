--[[  lua/release_owner.lua: deletes the owner field of a closed connection that a member registered over, and those
  of dead workers. A member without owners is to be probed.
  KEYS[1] events:meta  hash  has the namespace
  KEYS[2] member:<m>   hash  owners
  KEYS[3] workers      zset  worker -> end of its lease (ms)
  KEYS[4] leases       zset  <cluster>:<addr> -> end (ms)
  ARGV[1] owner <worker>/<connection>
  ARGV[2] member (<cluster>:<addr>)
  Returns {now, end of its lease} when the member has no owner left; {} when it has one or never had that one  ]]
--- @include "clock"
local now = now_ms()
if redis.call("HDEL", KEYS[2], "owner:" .. ARGV[1]) == 0 then return {} end
local owned = false
for _, field in ipairs(redis.call("HKEYS", KEYS[2])) do
  local worker = string.match(field, "^owner:([^/]*)/")
  if worker then
    if tonumber(redis.call("ZSCORE", KEYS[3], worker) or 0) < now then
      redis.call("HDEL", KEYS[2], field)
    else
      owned = true
    end
  end
end
local lease = redis.call("ZSCORE", KEYS[4], ARGV[2])
if owned or not lease then return {} end
return { tostring(now), lease }
