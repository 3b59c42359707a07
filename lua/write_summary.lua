--[[  lua/write_summary.lua: notes what a block of entries names, if the stream has these entries as they were read.
  KEYS[1] events:meta       hash    incarnation
  KEYS[2] events            stream
  KEYS[3] events:summaries  stream
  ARGV[1] incarnation
  ARGV[2] id of the summary before, "0-0" for none
  ARGV[3] id of the block's last entry, and of its summary
  ARGV[4] seq and op of that entry, with a space between them
  ARGV[5] version of the summary
  ARGV[6] id from which on the block is
  ARGV[7] Bloom filter in base64
  ARGV[8] checksum
  Returns 1; 0 where nothing was written: an earlier state of the store is back, or another process was faster  ]]
--- @include "damage"
local MOST = 2000 -- of 6 KB each
local KEPT_MS = 86400000 -- if no job writes any more

local before = redis.call("XREVRANGE", KEYS[3], "+", "-", "COUNT", 1)[1]
if redis.call("HGET", KEYS[1], "inc") ~= ARGV[1] or (before and before[1] or "0-0") ~= ARGV[2] then return 0 end
local entry = redis.call("XRANGE", KEYS[2], ARGV[3], ARGV[3])[1]
if not entry then return 0 end
local fields = {}
for i = 1, #entry[2], 2 do fields[entry[2][i]] = entry[2][i + 1] end
if (fields.seq or "") .. " " .. (fields.op or "") ~= ARGV[4] then return 0 end
local added = reply_or(false, "XADD", KEYS[3], "MAXLEN", MOST, ARGV[3], "v", ARGV[5], "inc", ARGV[1], "first", ARGV[6],
  "bits", ARGV[7], "sum", ARGV[8])
if not added then -- a later summary was there and was deleted by hand, or there is no memory
  redis.call("DEL", KEYS[3])
  return 0
end
redis.call("PEXPIRE", KEYS[3], KEPT_MS)
return 1
