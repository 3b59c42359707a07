-- Writes to a key. One of another type is damage and is deleted first: an error would leave a script half done.
local function overwrite(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == "table" and reply.err then
    if string.find(reply.err, "WRONGTYPE", 1, true) then redis.call("DEL", key) end
    return redis.call(command, key, ...)
  end
  return reply
end
