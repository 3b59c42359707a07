-- The time-out of a member, in ms. Another text is damage: a sum with it may be no number, which Redis refuses.
local timeouts = {} -- text -> whether it is one: most members have the same

local function is_timeout(text)
  local sound = timeouts[text or ""]
  if sound == nil then
    sound = text and #text <= 8 and string.find(text, "^[1-9]%d*$") ~= nil and tonumber(text) <= 86400000 or false
    timeouts[text or ""] = sound
  end
  return sound
end
