--- @include "countdown"
-- What scripts that renew the leases of living members, any number at once, have in common. Nearly always a reply is the
-- one before, and then it is not said.
local call = redis.call
local namespace = string.match(KEYS[1], "^ns:{[^}]*}:")

-- members: of whom the leases are, the first n of the table; the last n of ARGV are the replies expected.
-- of_living(i), of a member whose lease has not ended: time-out, the rest of the reply as a text, and as two values; or
-- nil, what there is instead of a renewal, and two values
-- Returns {i, reply, ...} of the items whose reply is not the one expected: {"renewed", time-out, value, value},
-- {"unknown"}, {"lapsed"}, {what of_living says, value, value}; and whether a lease was renewed.
local function renew(members, n, of_living)
  local leases = call("ZMSCORE", KEYS[1], unpack(members, 1, n))
  local expected, others, ends = #ARGV - n, {}, {}
  for i = 1, n do
    local lease = tonumber(leases[i] or nil)
    local timeout, text, one, two
    if not lease then
      text = "unknown"
    elseif now >= lease then
      text = "lapsed"
    else
      timeout, text, one, two = of_living(i)
    end
    local reply
    if not timeout then
      reply = { text, one, two }
    else
      local till = lease_end(timeout)
      ends[#ends + 1] = till
      ends[#ends + 1] = members[i]
      if is_countdown_due(lease, timeout) then
        call("SET", namespace .. "alive:" .. members[i], till, "PX", timeout)
      end
      if ARGV[expected + i] ~= timeout .. " " .. text then reply = { "renewed", timeout, one, two } end
    end
    if reply then
      others[#others + 1] = i
      others[#others + 1] = reply
    end
  end
  if #ends > 0 then call("ZADD", KEYS[1], unpack(ends)) end
  return others, #ends > 0
end
