--- @include "keys"
-- The connections that a member registered over: fields owner:<worker>/<connection>. A worker that dies leaves its own.
-- Returns the fields of those that living workers have, and the other ones.
local function connections_of(ctx, fields)
  local living, dead, alive = {}, {}, {}
  for field in pairs(fields) do
    local worker = string.match(field, "^owner:([^/]*)/")
    if worker then
      if alive[worker] == nil then
        alive[worker] = tonumber(redis.call("ZSCORE", K.workers, worker) or 0) >= ctx.now
      end
      local list = alive[worker] and living or dead
      list[#list + 1] = field
    end
  end
  return living, dead
end
