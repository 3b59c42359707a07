--- @include "tables"
-- {master address, its HA address}, both "" unless the member is a slave of a living master
local function master_of(ctx, broker, id)
  local key = id ~= "0" and broker.addrs["0"]
  if not key then return { "", "" } end
  local master = member_of(ctx, key)
  if not master.exists or lapsed(ctx, master.lease) then return { "", "" } end
  return { address_of(key), master.fields.ha or "" }
end
