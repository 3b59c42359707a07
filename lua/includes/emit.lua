--- @include "keys"
-- The event stream. A script decides, then appends its entries as one group, then changes tables: nothing may
-- fail after the first write. ctx: {now, origin = {op, actor, peer}, entries}
local EVENTS_MAXLEN = 1000000

-- fields: {name, value, name, value, ...}; a pair with a false value is left out
local function emit(ctx, kind, cause, fields)
  ctx.entries[#ctx.entries + 1] = { kind = kind, cause = cause, fields = fields or {} }
end

-- A new stream beside existing tables says nothing of them: it asks for a checkpoint round.
local function begin_stream(ctx, had_stream)
  local lost = had_stream or redis.call("EXISTS", K.brokers, K.drains, K.kv, K.settings) > 0
  table.insert(ctx.entries, 1, {
    kind = "stream_started", cause = lost and "stream_lost" or "empty_store", fields = {},
  })
  if lost then
    redis.call("HSET", K.asked, "start", cjson.encode({ at_ms = ctx.now, actor = ctx.origin.actor }))
  end
end

-- Returns the id of the group's last entry, "" when there was nothing to append.
local function append(ctx)
  if #ctx.entries == 0 then return "" end
  local meta = redis.call("HMGET", K.meta, "inc", "seq")
  local inc, seq = meta[1], tonumber(meta[2] or 0) or 0
  if not inc or redis.call("EXISTS", K.events) == 0 then
    inc, seq = tostring(ctx.now), 0
    begin_stream(ctx, meta[1])
  end
  local n, last = #ctx.entries, ""
  redis.call("HSET", K.meta, "inc", inc, "seq", seq + n)
  for i, entry in ipairs(ctx.entries) do
    local flat = { "v", "1", "kind", entry.kind, "inc", inc, "seq", seq + i }
    local function put(name, value)
      if value then
        flat[#flat + 1] = name
        flat[#flat + 1] = value
      end
    end
    put("part", n > 1 and i .. "/" .. n)
    put("op", ctx.origin.op)
    put("cause", entry.cause)
    put("actor", ctx.origin.actor)
    put("peer", ctx.origin.peer)
    for f = 1, #entry.fields, 2 do put(entry.fields[f], entry.fields[f + 1]) end
    last = redis.call("XADD", K.events, "MAXLEN", "~", EVENTS_MAXLEN, "*", unpack(flat))
  end
  ctx.entries = {}
  return last
end
