--- @include "keys"
--- @include "damage"
-- The event stream. A script decides, then appends its entries as one group, then changes tables: nothing may
-- fail after the first write. ctx: {now, origin = {op, actor, peer}, entries}
local EVENTS_MAXLEN = "1000000" -- a text, as is what else is written often: Redis takes longer to write a number
local EVENTS_BYTES = 268435456 -- until a job has noted the option eventsMaxBytes in events:meta
local OFFSETS = 100 -- noted while as many bytes are appended as the stream may have

-- A damaged number counts as `other`; one of 16 digits and more is none that Lua could count on from.
local function number_of(text, other)
  return text and #text < 16 and not string.find(text, "%D") and tonumber(text) or other
end

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

-- Returns names and values of an entry, and their bytes.
local function flat_of(ctx, entry, inc, seq, part)
  local origin, flat, n = ctx.origin, { "v", "1", "kind", entry.kind, "inc", inc, "seq", seq }, 8
  local function put(list)
    for i = 1, #list, 2 do
      if list[i + 1] then
        flat[n + 1], flat[n + 2] = list[i], list[i + 1]
        n = n + 2
      end
    end
  end
  put({
    "part", part or false, "op", origin.op or false, "cause", entry.cause or false, "actor", origin.actor or false,
    "peer", origin.peer or false,
  })
  put(entry.fields)
  return flat, #table.concat(flat)
end

-- The trimming job comes each 10 s, and a peer may write gigabytes meanwhile. So the scripts trim too: at each hundredth
-- of the bytes that the stream may have, the offset of the last entry is noted, which is how many bytes were ever
-- appended, and entries more than five quarters of those bytes before it are dropped.
local function note_offset(last, appended, most)
  overwrite("ZADD", K.offsets, appended, last)
  local past = string.format("%.0f", appended - most * 5 / 4)
  local entries = redis.call("ZRANGEBYSCORE", K.offsets, "-inf", past)
  if #entries == 0 then return end
  redis.call("ZREMRANGEBYSCORE", K.offsets, "-inf", past)
  reply_or(0, "XTRIM", K.events, "MINID", "~", entries[#entries], "LIMIT", 0) -- a name may be no id
end

local stream -- {inc, seq, appended, most}: where the stream ends: no other client writes while a script runs

local function end_of_stream(ctx)
  local meta = redis.call("HMGET", K.meta, "inc", "seq", "appended", "max_bytes")
  local ends = {
    inc = number_of(meta[1], nil) and meta[1], seq = number_of(meta[2], 0),
    appended = number_of(meta[3], 0), most = number_of(meta[4], EVENTS_BYTES),
  }
  if not ends.inc or redis.call("EXISTS", K.events) == 0 then
    ends.inc, ends.seq = tostring(ctx.now), 0
    begin_stream(ctx, meta[1])
  end
  return ends
end

-- Returns the id of the group's last entry, "" when there was nothing to append.
local function append(ctx)
  if #ctx.entries == 0 then return "" end
  stream = stream or end_of_stream(ctx)
  local inc, seq, appended, most = stream.inc, stream.seq, stream.appended, stream.most
  local n, flats, last, before = #ctx.entries, {}, "", appended
  for i, entry in ipairs(ctx.entries) do
    local bytes
    flats[i], bytes = flat_of(ctx, entry, inc, seq + i, n > 1 and i .. "/" .. n)
    appended = appended + bytes
  end
  for _, flat in ipairs(flats) do
    last = id_or_nil(K.events, EVENTS_MAXLEN, flat)
    if not last then -- a new stream begins, as after a loss
      redis.call("DEL", K.events)
      stream = nil
      return append(ctx)
    end
  end
  stream.seq, stream.appended = seq + n, appended
  redis.call("HSET", K.meta, "inc", inc, "seq", seq + n, "appended", appended)
  if math.floor(appended * OFFSETS / most) > math.floor(before * OFFSETS / most) then note_offset(last, appended, most) end
  ctx.entries = {}
  return last
end
