--- @include "lease"
-- Ends a hold: whom it kept is gone from now on, and none of them counts for another one.
local function release(ctx)
  change_hold(ctx, "released", ctx.hold_from, ctx.now, { count_from_ms = ctx.now + 1 })
end
