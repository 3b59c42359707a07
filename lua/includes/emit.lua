--- @include "keys"
--- @include "damage"
-- The event stream. A script decides, then appends its entries as one group, then changes tables: nothing may
-- fail after the first write. ctx: {now, origin = {op, actor, peer}, entries = {{kind, cause, fields, ...}, ...}}
local EVENTS_MAXLEN = "1000000" -- a text, as is what else is written often: Redis takes longer to write a number
local EVENTS_BYTES = 268435456 -- until a job has noted the option eventsMaxBytes in events:meta
local OFFSETS = 100 -- noted while as many bytes are appended as the stream may have
local GROUP_EVENTS_MOST, GROUP_EVENTS_MS = "1000", "60000" -- schedulers read them at once, and push nothing that is older
local MEMBER_KINDS = { broker_registered = true, broker_removed = true }
local OF_GROUP_EVENTS = { broker = true, id = true, addr = true, addrs = true, ha = true }

-- A damaged number counts as `other`; one of 16 digits and more is none that Lua could count on from.
local function number_of(text, other)
  return text and #text < 16 and not string.find(text, "%D") and tonumber(text) or other
end

-- The fields are any number of {name, value, name, value, ...}; a pair with a false value is left out.
local function emit(ctx, kind, cause, ...)
  ctx.entries[#ctx.entries + 1] = { kind, cause, ... }
end

-- A new stream beside existing tables says nothing of them: it asks for a checkpoint round.
local function begin_stream(ctx, had_stream)
  local lost = had_stream or redis.call("EXISTS", K.brokers, K.drains, K.kv, K.settings) > 0
  table.insert(ctx.entries, 1, { "stream_started", lost and "stream_lost" or "empty_store" })
  if lost then
    redis.call("HSET", K.asked, "start", cjson.encode({ at_ms = ctx.now, actor = ctx.origin.actor }))
  end
end

local flat = {} -- names and values of the entry that is appended; one list for all of a script, for a new one takes longer

-- Puts names and values behind the first `n`; returns how many there are then.
local function put_fields(n, fields)
  for i = 1, #fields, 2 do
    local value = fields[i + 1]
    if value then
      flat[n + 1], flat[n + 2] = fields[i], value
      n = n + 2
    end
  end
  return n
end

-- Puts an entry; returns how many names and values it has.
local function put_entry(origin, entry, inc, seq, part)
  local n = put_fields(0, {
    "v", "1", "kind", entry[1], "inc", inc, "seq", seq, "part", part or false, "op", origin.op or false,
    "cause", entry[2] or false, "actor", origin.actor or false, "peer", origin.peer or false,
  })
  for i = 3, #entry do n = put_fields(n, entry[i]) end
  return n
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

-- {inc, seq, appended, most}: where the stream ends. One that begins has its first entry in the first group.
local function end_of_stream(groups)
  local meta = redis.call("HMGET", K.meta, "inc", "seq", "appended", "max_bytes")
  local ends = {
    inc = number_of(meta[1], nil) and meta[1], seq = number_of(meta[2], 0),
    appended = number_of(meta[3], 0), most = number_of(meta[4], EVENTS_BYTES),
  }
  if not ends.inc or redis.call("EXISTS", K.events) == 0 then
    ends.inc, ends.seq = tostring(groups[1].now), 0
    begin_stream(groups[1], meta[1])
  end
  return ends
end

-- What 905 needs of an entry about a member that enters or leaves; nil of a mirrored one, which asks nothing of us.
local function group_event(entry, event_id)
  local event, fields = { event = event_id, kind = entry[1], cause = entry[2] }, entry[3]
  for i = 1, #fields, 2 do
    if fields[i] == "mirrored" and fields[i + 1] then return nil end
    if OF_GROUP_EVENTS[fields[i]] then event[fields[i]] = fields[i + 1] end
  end
  return event
end

-- Schedulers push 905 by a stream of its own: most entries of the other one are about topics.
local function append_group_events(events)
  local entry = { "events", cjson.encode(events) }
  if not id_or_nil(K.group_events, GROUP_EVENTS_MOST, entry) then
    redis.call("DEL", K.group_events)
    id_or_nil(K.group_events, GROUP_EVENTS_MOST, entry)
  end
  redis.call("PEXPIRE", K.group_events, GROUP_EVENTS_MS)
end

-- Appends the entries of several ctx, each of which has some, as a group each; returns the id of each group's last entry.
local function append_groups(groups)
  local ends, ids, last, of_members = end_of_stream(groups), {}, nil, {}
  local seq, appended, most = ends.seq, ends.appended, ends.most
  for g, ctx in ipairs(groups) do
    local n, events = #ctx.entries, nil
    for i, entry in ipairs(ctx.entries) do
      seq = seq + 1
      local texts = put_entry(ctx.origin, entry, ends.inc, string.format("%d", seq), n > 1 and i .. "/" .. n)
      appended = appended + #table.concat(flat, "", 1, texts)
      last = id_or_nil(K.events, EVENTS_MAXLEN, flat, texts)
      if not last then -- a new stream begins, as after a loss
        redis.call("DEL", K.events)
        return append_groups(groups)
      end
      local event = MEMBER_KINDS[entry[1]] and group_event(entry, last)
      if event then
        events = events or {}
        events[#events + 1] = event
      end
    end
    ids[g], of_members[#of_members + 1] = last, events
  end
  for _, events in ipairs(of_members) do append_group_events(events) end
  for _, ctx in ipairs(groups) do ctx.entries = {} end
  redis.call("HSET", K.meta, "inc", ends.inc, "seq", seq, "appended", appended)
  if math.floor(appended * OFFSETS / most) > math.floor(ends.appended * OFFSETS / most) then
    note_offset(last, appended, most)
  end
  return ids
end

-- Returns the id of the group's last entry, "" when there was nothing to append.
local function append(ctx)
  return #ctx.entries > 0 and append_groups({ ctx })[1] or ""
end
