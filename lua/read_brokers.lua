--[[  lua/read_brokers.lua: reads brokers of a route that has more than lua/read_routes.lua may take the time for.
  KEYS[1] events:meta  hash  holds
  ARGV    broker names
  Returns {brokers, {name that is left, ...}}; brokers as lua/read_routes.lua says  ]]
--- @include "route_brokers"
local WORK_MAX = 20000
local ctx = { now = now_ms(), entries = {} }
open_leases(ctx)
local brokers = {}
local left = read_brokers(ctx, ARGV, brokers, WORK_MAX)
return { brokers, left }
