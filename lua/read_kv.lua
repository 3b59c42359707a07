--[[  lua/read_kv.lua: reads a KV value with its tag.
  KEYS[1] kv:<namespace>   hash  key -> value
  Also kv_versions:<namespace>, a hash: key -> its last change's id
  ARGV[1] KV namespace
  ARGV[2] key
  Returns {value, tag}, {} without a value  ]]
--- @include "kv_tag"
local value = redis.call("HGET", KEYS[1], ARGV[2])
return value and { value, kv_tag(ARGV[1], ARGV[2], value) } or {}
