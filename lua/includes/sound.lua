--- @include "timeouts"
-- Values that may stand in a table; others are damage. Numbers have at most 14 digits, which is all that
-- Lua prints of one.
local function is_whole(text)
  return text and #text <= 14 and string.find(text, "^%d+$") ~= nil
end

local function is_epoch(text) return is_whole(text) and string.find(text, "^[1-9]") ~= nil end

-- Whether a text is UTF-8: no name is any other, since none could be registered.
local function is_text(text)
  if not string.find(text, "[\128-\255]") then return true end
  if string.find(text, "\237[\160-\191]") then return false end -- half a surrogate pair
  local rest = string.gsub(text, "[\194-\223][\128-\191]", "-")
  rest = string.gsub(rest, "[\224-\239][\128-\191][\128-\191]", "-")
  rest = string.gsub(rest, "[\240-\244][\128-\191][\128-\191][\128-\191]", "-")
  return not string.find(rest, "[\128-\255]")
end

-- {id, address} of a place in the hash of a broker, addr:<id> with <cluster>:<addr>; nothing for a field that is none.
local function place_in(field, value)
  local id = string.match(field, "^addr:(%-?%d+)$")
  local address = id and #id <= 20 and string.match(value, "^[^:]*:(.*)$")
  if address and is_text(value) then return id, address end
end
