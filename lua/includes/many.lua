-- unpack() fails beyond some 8,000 values, so a command takes many values in parts. Pairs stay together.
local PART = 1000
local function call_many(command, key, values)
  for i = 1, #values, PART do
    redis.call(command, key, unpack(values, i, math.min(i + PART - 1, #values)))
  end
end
