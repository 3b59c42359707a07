--- @include "keys"
--- @include "damage"
-- Drains: an operator keeps producers off a broker name, whatever it registers. One with an end holds until then,
-- whether its end is recorded or not.

-- What is stored of a broker's drain, as JSON; false when none holds.
local function drain_of(ctx, name)
  local text = text_or_nil("HGET", K.drains, name)
  if not text then return false end
  local ends = text_or_nil("ZSCORE", K.drain_ends, name)
  return (not ends or ctx.now < tonumber(ends)) and text
end
