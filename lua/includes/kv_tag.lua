--- @include "keys"
--- @include "damage"
-- The tag of a KV value, "" without a value: the id of its last change, so that a value that came back is another one,
-- and its hash, so that a change by a release that notes no ids is one too.
local function kv_tag(namespace, key, value)
  if not value then return "" end
  return (text_or_nil("HGET", K.kv_versions_of(namespace), key) or "0-0") .. "." .. redis.sha1hex(value)
end
