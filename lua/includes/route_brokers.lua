--- @include "drains"
--- @include "lease"
--- @include "sound"
-- Brokers of routes, each with its living members. Work is counted in units of 0.13 us.
local BROKER, MEMBER = 40, 40
local any_drain = redis.call("EXISTS", K.drains) == 1

-- Appends {name, epoch, cluster, acting, zone, drained, id, address, filters (JSON or ""), ...} to `brokers`, unless no
-- member lives; returns the work.
local function read_broker(ctx, name, brokers)
  local call, work = redis.call, BROKER
  local attributes = call("HGETALL", K.broker(name))
  local broker = { name, "", "", "0", "", any_drain and drain_of(ctx, name) and "1" or "0" }
  for a = 1, #attributes, 2 do
    local field, value = attributes[a], attributes[a + 1]
    if not is_text(value) then -- damage, which the repair drops
    elseif field == "epoch" then broker[2] = value
    elseif field == "cluster" then broker[3] = value
    elseif field == "acting" then broker[4] = value
    elseif field == "zone" then broker[5] = value
    elseif string.sub(field, 1, 5) == "addr:" then
      work = work + MEMBER
      local id, address = place_in(field, value)
      local lease = id and call("ZSCORE", K.leases, value)
      if lease and not lapsed(ctx, tonumber(lease)) then
        broker[#broker + 1] = id
        broker[#broker + 1] = address
        local filters = call("HGET", K.member(value), "filters") or ""
        broker[#broker + 1] = filters
        work = work + #filters / 50
      end
    end
  end
  if #broker > 6 then brokers[#brokers + 1] = broker end
  return work
end

-- Reads brokers while the work is below the limit, one at least; returns the names that are left.
local function read_brokers(ctx, names, brokers, work_max)
  local work, left = 0, {}
  for i, name in ipairs(names) do
    if i > 1 and work > work_max then
      left[#left + 1] = name
    else
      work = work + read_broker(ctx, name, brokers)
    end
  end
  return left, work
end
