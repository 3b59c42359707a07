-- The time-out of a member, in ms. Another text is damage: a sum with it may be no number, which Redis refuses.
local function is_timeout(text)
  return text and #text <= 8 and string.find(text, "^[1-9]%d*$") ~= nil and tonumber(text) <= 86400000 or false
end

-- The countdown alive:<m> is written once in such a part of the time-out, so it may end that much before the lease.
local function countdown_part(timeout) return timeout / 8 end
