-- Keys of another type, which are damage. Nowhere else is an error of a command caught (redis.pcall).

-- Writes to a key. One of another type is deleted first: an error would leave a script half done.
local function overwrite(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == "table" and reply.err then
    if string.find(reply.err, "WRONGTYPE", 1, true) then redis.call("DEL", key) end
    return redis.call(command, key, ...)
  end
  return reply
end

-- Returns the text that a command replies, nil for none or of a key of another type.
local function text_or_nil(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  return type(reply) == "string" and reply or nil
end
