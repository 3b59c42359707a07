--[[  lua/read_drains.lua: reads the drains that are in force of some broker names, at one moment.
  KEYS[1] events:meta  hash  names the namespace
  ARGV    broker names, a hundred or so
  Returns {{name, drain as JSON, cluster, topics of the broker}, ...} in the order of the names, those that are not
          drained left out; the cluster is nil of a name that no member is registered under, the JSON "" where it is
          longer than any that lua/set_drain.lua stores  ]]
--- @include "clock"
--- @include "drains"
local BYTES_MAX = 16384
local ctx = { now = now_ms() }
local drains = {}
for _, name in ipairs(ARGV) do
  local text = drain_of(ctx, name)
  if text then
    drains[#drains + 1] = {
      name, #text <= BYTES_MAX and text or "", text_or_nil("HGET", K.broker(name), "cluster") or false,
      reply_or(0, "HLEN", K.topics_of(name)),
    }
  end
end
return drains
