--- @include "repair"
-- Repairs of rows: the same text stands in route:<topic> (or mapping:<topic>) under the broker's name, the forward row,
-- and in topics_of:<name> (mappings_of) under the topic, the reverse row.
local INT_MAX = 2147483647

local function is_queue_data(text)
  local parts = { string.match(text, "^[1-9]%d*,(%-?%d+),(%-?%d+),(%-?%d+),(%-?%d+)$") }
  for _, part in ipairs(parts) do
    if math.abs(tonumber(part)) > INT_MAX + 1 then return false end
  end
  return #parts == 4
end

local function is_mapping(text)
  local info = string.match(text, "^[1-9]%d*,({.*})$")
  return info and is_json(info)
end

local FORM = { topics = is_queue_data, mappings = is_mapping }
local FORWARD = { topics = K.route, mappings = K.mapping }
local REVERSE = { topics = K.topics_of, mappings = K.mappings_of }

-- The broker of rows: its epoch, false without; which texts are right, of those seen.
local function owner_of(ctx, name)
  local owner = ctx.owners[name]
  if not owner then
    owner = { name = name, epoch = redis.call("HGET", K.broker(name), "epoch"), good = {}, topics = {} }
    ctx.owners[name] = owner
  end
  return owner
end

local function is_current(owner, which, text)
  if not text or not owner.epoch then return false end
  local good = owner.good[text]
  if good == nil then
    good = string.sub(text, 1, #owner.epoch + 1) == owner.epoch .. "," and FORM[which](text)
    owner.good[text] = good
  end
  return good
end

local function is_staged(owner, text)
  owner.pending = owner.pending or redis.call("GET", K.pending(owner.name)) or "none"
  return text and string.match(text, "^(%d+),") == owner.pending
end

-- Writes are collected, since entries are appended first.
local function restore(ctx, which, owner, topic, text, forward, reverse)
  ctx.writes[#ctx.writes + 1] = {
    which = which, name = owner.name, topic = topic, text = text, forward = forward, reverse = reverse,
  }
  owner.topics[#owner.topics + 1] = topic
  owner.which = which
  mended(ctx, which)
end

-- Returns whether both rows are the same from now on.
local function judge(ctx, which, owner, topic, forward, reverse)
  local want = is_current(owner, which, reverse) and reverse or is_current(owner, which, forward) and forward
  if want then
    if forward ~= want or reverse ~= want then restore(ctx, which, owner, topic, want, forward, reverse) end
    return true
  elseif not is_staged(owner, forward) and not is_staged(owner, reverse) then
    if forward and forward == reverse and string.match(forward, "^(%d+),") ~= owner.epoch then
      ctx.stale[owner.name] = true
      return true
    else
      ctx.writes[#ctx.writes + 1] = { which = which, name = owner.name, topic = topic, text = false }
      if which == "topics" then ctx.unlisted[#ctx.unlisted + 1] = topic end
      mended(ctx, which)
    end
  end
end

local function write_row(write, topics)
  local forward, reverse = FORWARD[write.which](write.topic), REVERSE[write.which](write.name)
  if write.text then
    if write.forward ~= write.text then redis.call("HSET", forward, write.name, write.text) end
    if write.reverse ~= write.text then redis.call("HSET", reverse, write.topic, write.text) end
    if write.which == "topics" and not topics[write.topic] then
      topics[write.topic], topics[#topics + 1] = true, write.topic
    end
  else
    redis.call("HDEL", forward, write.name)
    redis.call("HDEL", reverse, write.topic)
    if write.which == "topics" and redis.call("EXISTS", forward) == 0 then redis.call("SREM", K.topics, write.topic) end
  end
end

-- Rows that nothing shows are left to the clean-up, which may have forgotten them.
local function defer_stale(ctx)
  for name in pairs(ctx.stale) do
    if not redis.call("HGET", K.owed, "clean:" .. name) then
      defer(ctx, "clean", name, "repair:" .. string.format("%d", ctx.now))
      mended(ctx, "brokers")
    end
  end
end

local function rows_ctx(origin)
  local ctx = repair_ctx(origin)
  ctx.owners, ctx.writes, ctx.stale = {}, {}, {} -- by broker name; in order; broker names
  ctx.unlisted = {} -- topics that may leave the list of topics with a row that no route showed
  return ctx
end

-- Appends the entries, then writes the rows. The generation of each broker moves: its next registration is compared.
local function commit_rows(ctx)
  for name, owner in pairs(ctx.owners) do
    if #owner.topics > 0 then emit_repaired(ctx, owner.which, { cjson.encode(name) }, owner.topics) end
  end
  if #ctx.unlisted > 0 then emit_repaired(ctx, "topics", {}, ctx.unlisted) end
  append(ctx)
  for name, owner in pairs(ctx.owners) do
    if #owner.topics > 0 then redis.call("HINCRBY", K.broker(name), "gen", 1) end
  end
  local topics = {}
  for _, write in ipairs(ctx.writes) do write_row(write, topics) end
  if #topics > 0 then redis.call("SADD", K.topics, unpack(topics)) end
  defer_stale(ctx)
end
