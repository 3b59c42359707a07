--[[  lua/delete_wrong_type.lua: deletes keys that have another type than they must.
  KEYS     keys of one type
  ARGV[1]  the type, as TYPE replies it
  Returns how many were deleted  ]]
local deleted = 0
for _, key in ipairs(KEYS) do
  local stored = redis.call("TYPE", key).ok
  if stored ~= ARGV[1] and stored ~= "none" then
    deleted = deleted + redis.call("DEL", key)
  end
end
return deleted
