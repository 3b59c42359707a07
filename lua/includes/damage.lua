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

-- Returns what a command replies, `other` of a key of another type: what can be done without it is done.
local function reply_or(other, command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == "table" and reply.err then return other end
  return reply
end

-- Returns the id of an entry, the first `n` of a list, that is appended to a stream of at most `most` entries; nil when none
-- can be: the key has another type, or its last id is the greatest there is, by another hand.
local function id_or_nil(key, most, entry, n)
  local reply = redis.pcall("XADD", key, "MAXLEN", "~", most, "*", unpack(entry, 1, n))
  if type(reply) ~= "table" or not reply.err then return reply end
  if string.find(reply.err, "WRONGTYPE", 1, true) or string.find(reply.err, "exhausted", 1, true) then return nil end
  return redis.call("XADD", key, "MAXLEN", "~", most, "*", unpack(entry, 1, n))
end

-- Whether a text is JSON.
local function is_json(text) return (pcall(cjson.decode, text)) end
