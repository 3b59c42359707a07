-- A store that a dry run writes to: what a script writes is kept in memory and shown by its later reads, and nothing of it
-- reaches Redis. registry/scripts.py puts this before a script, whose last argument is then what the scripts before it,
-- of the same dry run, have written: {count of entries, keys = {key -> what was written to it}} as JSON.
--   what was written to a key: {kind, fields = {field -> text, false of one that is deleted}, gone (true: nothing of what
--   Redis has of it counts), more (how many fields there are more than in Redis)}; the field of a string is ""
local redis_call, state, entries = redis.call, cjson.decode(table.remove(ARGV)), {}
local keys = state.keys
-- Tables of topics, by the names of their keys, are not handed on: they are large, and no script that writes asks again for
-- what one before it wrote there. Those of routes are for lua/read_routes.lua, which shows what routes would be.
local OF_ROUTES = { route = true, mapping = true }
local NOT_HANDED_ON = { route = true, mapping = true, topics_of = true, mappings_of = true, topics = true }
local LENGTHS = { hash = "HLEN", set = "SCARD", zset = "ZCARD", stream = "XLEN", string = "EXISTS" }
local FIELD_OF = {
  hash = function(key, field) return redis_call("HGET", key, field) end,
  set = function(key, member) return redis_call("SISMEMBER", key, member) == 1 and "1" end,
  zset = function(key, member) return redis_call("ZSCORE", key, member) end,
  string = function(key) return redis_call("GET", key) end,
  stream = function(key) return redis_call("XLEN", key) < 0 end, -- an error of another type; entries are all new
}

local function by_twos(flat)
  local fields = {}
  for i = 1, #flat, 2 do fields[flat[i]] = flat[i + 1] end
  return fields
end

local FIELDS_OF = {
  hash = function(key) return by_twos(redis_call("HGETALL", key)) end,
  zset = function(key) return by_twos(redis_call("ZRANGE", key, 0, -1, "WITHSCORES")) end,
  set = function(key)
    local members = {}
    for _, member in ipairs(redis_call("SMEMBERS", key)) do members[member] = "1" end
    return members
  end,
}

local function text_of(value)
  if type(value) ~= "number" then return value end
  return string.format(value % 1 == 0 and "%.0f" or "%.17g", value)
end

local function field_of(kind, key, field)
  local own = keys[key]
  if own and own.fields[field] ~= nil then return own.fields[field] end
  return not (own and own.gone) and FIELD_OF[kind](key, field)
end

-- All fields of a key that was written to.
local function fields_of(key)
  local own = keys[key]
  local fields = own.gone and {} or FIELDS_OF[own.kind](key)
  for field, value in pairs(own.fields) do fields[field] = value or nil end
  return fields
end

local function length_of(key)
  local own = keys[key]
  return own.more + (own.gone and 0 or redis_call(LENGTHS[own.kind], key))
end

local function is_there(key)
  if keys[key] then return length_of(key) > 0 end
  return redis_call("EXISTS", key) == 1
end

-- Returns by how many fields the key has more; value: false deletes the field.
local function write(kind, key, field, value)
  local before = field_of(kind, key, field)
  local own = keys[key] or { fields = {}, more = 0 }
  local more = (value and 1 or 0) - (before and 1 or 0)
  keys[key], own.kind, own.fields[field], own.more = own, kind, value, own.more + more
  return more
end

local function write_all(kind, key, flat, value_at, step)
  local more = 0
  for i = 1, #flat, step do more = more + write(kind, key, flat[i], value_at(flat, i)) end
  return more
end

local function value_behind(flat, i) return text_of(flat[i + 1]) end
local function one() return "1" end
local function none() return false end

local function delete(key)
  local was_there = is_there(key)
  keys[key] = { gone = true, fields = {}, more = 0, kind = "hash" }
  return was_there and 1 or 0
end

local function is_events(key) return string.match(key, "^ns:{[^}]*}:events$") ~= nil end

local WRITES = {
  DEL = function(...)
    local count = 0
    for _, key in ipairs({ ... }) do count = count + delete(key) end
    return count
  end,
  HDEL = function(key, ...) return -write_all("hash", key, { ... }, none, 1) end,
  HINCRBY = function(key, field, by)
    local value = (field_of("hash", key, field) or 0) + by
    write("hash", key, field, text_of(value))
    return value
  end,
  HSET = function(key, ...) return write_all("hash", key, { ... }, value_behind, 2) end,
  INCR = function(key)
    local value = (field_of("string", key, "") or 0) + 1
    write("string", key, "", text_of(value))
    return value
  end,
  PEXPIRE = function(key) return is_there(key) and 1 or 0 end,
  SADD = function(key, ...) return write_all("set", key, { ... }, one, 1) end,
  SET = function(key, value)
    delete(key)
    write("string", key, "", text_of(value))
    return { ok = "OK" }
  end,
  SREM = function(key, ...) return -write_all("set", key, { ... }, none, 1) end,
  XADD = function(key, ...)
    local words = { ... }
    state.count = state.count + 1
    write("stream", key, string.format("%d", state.count), "1")
    if is_events(key) then
      local entry = {}
      for i = 5, #words do entry[#entry + 1] = text_of(words[i]) end -- behind MAXLEN ~ <most> *
      entries[#entries + 1] = entry
    end
    return string.format("%s-%d", redis_call("TIME")[1] * 1000, state.count)
  end,
  XTRIM = function() return 0 end,
  ZADD = function(key, ...)
    local flat = { ... }
    local more = 0
    for i = 1, #flat, 2 do more = more + write("zset", key, flat[i + 1], text_of(flat[i])) end
    return more
  end,
  ZREM = function(key, ...) return -write_all("zset", key, { ... }, none, 1) end,
  ZREMRANGEBYSCORE = function() return 0 end, -- of what is over, which counts for nothing
}

-- A bound of scores as Redis has it, and whether that score itself is beyond it.
local function bound(text)
  local score, is_open = string.gsub(text, "^%(", "")
  return score == "-inf" and -math.huge or score == "+inf" and math.huge or tonumber(score), is_open == 1
end

-- {{member, score}, ...} of a zset that was written to, lowest score first
local function between(key, least, most)
  local low, is_above = bound(text_of(least))
  local high, is_below = bound(text_of(most))
  local found = {}
  for member, text in pairs(fields_of(key)) do
    local score = tonumber(text)
    if score >= low and score <= high and not (is_above and score == low) and not (is_below and score == high) then
      found[#found + 1] = { member, text }
    end
  end
  table.sort(found, function(a, b)
    local one_score, other_score = tonumber(a[2]), tonumber(b[2])
    if one_score ~= other_score then return one_score < other_score end
    return a[1] < b[1]
  end)
  return found
end

local function options_of(words)
  local options = { from = 1, most = math.huge }
  for i, word in ipairs(words) do
    if word == "WITHSCORES" then options.with_scores = true end
    if word == "LIMIT" then options.from, options.most = words[i + 1] + 1, tonumber(words[i + 2]) end
  end
  return options
end

local function names_of(key, most)
  local names = {}
  for name in pairs(fields_of(key)) do
    if #names >= (most or math.huge) then break end
    names[#names + 1] = name
  end
  return names
end

local function each(kind, reply)
  return function(key, ...)
    local replies = {}
    for i, field in ipairs({ ... }) do replies[i] = reply(field_of(kind, key, field)) end
    return replies
  end
end

local function itself(value) return value end
local function as_number(value) return value and 1 or 0 end

-- Of a key that was written to; true of what is asked of Redis at any rate.
local READS = {
  EXISTS = function(...)
    local count = 0
    for _, key in ipairs({ ... }) do count = count + as_number(is_there(key)) end
    return count
  end,
  GET = function(key) return field_of("string", key, "") end,
  HGET = function(key, field) return field_of("hash", key, field) end,
  HGETALL = function(key)
    local flat = {}
    for field, value in pairs(fields_of(key)) do flat[#flat + 1], flat[#flat + 2] = field, value end
    return flat
  end,
  MEMORY = true,
  HKEYS = names_of, HLEN = length_of, HMGET = each("hash", itself), HRANDFIELD = function(key)
    return names_of(key, 1)[1] or false
  end,
  HSCAN = true, SCARD = length_of, SISMEMBER = function(key, member)
    return as_number(field_of("set", key, member))
  end,
  SMEMBERS = names_of, SMISMEMBER = each("set", as_number), SRANDMEMBER = names_of, SSCAN = true, TIME = true,
  TYPE = function(key) return { ok = is_there(key) and keys[key].kind or "none" } end,
  XLEN = length_of, XRANGE = true, XREVRANGE = true, ZCARD = length_of, ZCOUNT = function(...) return #between(...) end,
  ZMSCORE = each("zset", itself), ZRANGE = true,
  ZRANGEBYSCORE = function(key, least, most, ...)
    local options, flat = options_of({ ... }), {}
    for i, row in ipairs(between(key, least, most)) do
      if i >= options.from and i < options.from + options.most then
        flat[#flat + 1] = row[1]
        if options.with_scores then flat[#flat + 1] = row[2] end
      end
    end
    return flat
  end,
  ZSCORE = function(key, member) return field_of("zset", key, member) end,
}

local function call(command, ...)
  local writes, reads, key = WRITES[command], READS[command], ...
  if writes then return writes(...) end
  if not reads then error("a dry run knows no " .. command) end
  if reads == true or command ~= "EXISTS" and not keys[key] then return redis_call(command, ...) end
  return reads(...)
end

local function pcall_command(...)
  local is_done, reply = pcall(call, ...)
  if is_done or type(reply) == "table" then return reply end
  return { err = tostring(reply) }
end

local redis = { call = call, pcall = pcall_command, sha1hex = redis.sha1hex }

-- What a script returns in a dry run: what is handed on, rows of routes that it wrote, by their keys, the entries that it
-- would append, and its reply.
local function handed_on(reply)
  local routes = {}
  for key, own in pairs(keys) do
    local table = string.match(key, "^ns:{[^}]*}:([a-z_]+)")
    if OF_ROUTES[table] then routes[key] = own end
    if NOT_HANDED_ON[table] then keys[key] = nil end
  end
  return { cjson.encode(state), cjson.encode(routes), entries, reply }
end
