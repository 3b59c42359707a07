--- @include "lease"
-- Ends a hold: the members that it kept have lapsed from now on, and count for no other hold.
local function end_hold(ctx)
  change_hold(ctx, "released", ctx.hold_from, ctx.now, { count_from_ms = ctx.now + 1 })
end
