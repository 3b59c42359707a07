--[[  lua/write_slice.lua: a further slice of a live broker's topic table, built in Python under the generation fence:
  what a registration could not carry in its first script, and permission and acting-master rewrites.
  KEYS[1] events:meta    hash  incarnation, seq
  KEYS[2] broker:<name>  hash  the broker's entry
  ARGV[1] request as JSON: origin, name, epoch, gen (both must still be the broker's), cluster, without_master (1: only
          while id 0 is free), and with a registration's last slice: member, id, dv, sig, applied
  ARGV[2] the slice, as lua/includes/rows.lua says
  Returns {event id, new generation}; {"", -1} when the broker has changed  ]]
--- @include "clock"
--- @include "rows"
local r = cjson.decode(ARGV[1])
local state = redis.call("HMGET", KEYS[2], "epoch", "gen", "addr:0", "cluster")
if state[1] ~= r.epoch or tonumber(state[2]) ~= r.gen or (r.without_master and state[3]) then return { "", -1 } end
local slice = slice_at(2)
local gen = r.gen + (slice.writes and 1 or 0)
local ctx = { now = now_ms(), origin = r.origin, entries = {} }
local member = r.member and prefix .. "member:" .. r.member
if member and redis.call("EXISTS", member) == 0 then return { "", -1 } end
local before = member and redis.call("HGET", member, "dv") or ""
if member and r.dv ~= before then
  local cluster, address = string.match(r.member, "^([^:]*):(.*)$")
  cluster = string.gsub(string.gsub(cluster, "%%3A", ":"), "%%25", "%%")
  emit_version(ctx, slice, {
    "cluster", cluster, "broker", r.name, "id", r.id, "addr", address, "epoch", r.epoch, "dv", r.dv,
  }, false, before)
else
  emit_rows(ctx, slice, {
    "cluster", r.cluster or state[4], "broker", r.name, "epoch", r.epoch, "dv", r.dv or false,
  })
end
local last = append(ctx)
redis.call("HSET", KEYS[2], "gen", gen)
write_counted_rows(slice, r.name, r.epoch)
if member then
  redis.call("HSET", member, "dv", r.dv, "sig", r.sig, "applied", r.applied, "at", r.epoch .. ":" .. gen)
end
return { last, gen }
