--[[  lua/renew_mirrored.lua: renews the leases of mirrored members, any number at once, by what a mirror has seen.
  KEYS[1] leases      zset    <cluster>:<addr> -> end (ms)
  and for each item:
  KEYS    member:<m>  hash    timeout, mirrored, places
  ARGV    member (<cluster>:<addr>)
  ARGV    place (slot:<id>:<name>)
  and after all items, for each:
  ARGV    "": no reply is expected
  Returns {i, reply, ...} of all items: {"renewed", timeout (ms)}; {"unknown"} or {"lapsed"}: it is to be registered;
          {"own"} it registered itself  ]]
--- @include "renewals"
local n = #ARGV / 3
local members = {}
for i = 1, n do members[i] = ARGV[2 * i - 1] end

local function judge(i)
  local member = call("HMGET", KEYS[i + 1], "timeout", "mirrored", ARGV[2 * i])
  if not member[2] then return nil, "own" end
  if not member[3] then return nil, "unknown" end
  if not lease_end(member[1]) then return nil, "lapsed" end -- damaged
  return member[1], ""
end

return (renew(members, n, judge))
