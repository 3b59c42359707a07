-- Values that may stand in a table; others are damage. Numbers have at most 14 digits, which is all that
-- Lua prints of one.
local function is_whole(text)
  return text and #text <= 14 and string.find(text, "^%d+$") ~= nil
end

local function is_epoch(text) return is_whole(text) and string.find(text, "^[1-9]") ~= nil end

-- {id, address} of a place in the hash of a broker, addr:<id> with <cluster>:<addr>; nothing for a field that is none.
local function place_in(field, value)
  local id = string.match(field, "^addr:(%-?%d+)$")
  local address = id and #id <= 20 and string.match(value, "^[^:]*:(.+)$")
  if address then return id, address end
end
