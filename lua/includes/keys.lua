-- Key names that a script learns from a table. registry/keys.py is their catalogue; KEYS[1] has the namespace.
local prefix = string.match(KEYS[1], "^ns:{[^}]*}:")
local K = {
  asked = prefix .. "events:asked",
  brokers = prefix .. "brokers",
  clusters = prefix .. "clusters",
  drain_ends = prefix .. "drains:ends",
  drains = prefix .. "drains",
  epoch = prefix .. "epoch",
  events = prefix .. "events",
  group_events = prefix .. "events:groups",
  kv = prefix .. "kv",
  lapses = prefix .. "lapses",
  leases = prefix .. "leases",
  meta = prefix .. "events:meta",
  offsets = prefix .. "events:offsets",
  order = prefix .. "kv:ORDER_TOPIC_CONFIG",
  owed = prefix .. "owed",
  refused = prefix .. "refused",
  repair = prefix .. "repair",
  settings = prefix .. "settings",
  topics = prefix .. "topics",
  workers = prefix .. "workers",
}
function K.alive(member) return prefix .. "alive:" .. member end
function K.broker(name) return prefix .. "broker:" .. name end
function K.cluster(name) return prefix .. "cluster:" .. name end
function K.kv_bytes_of(namespace) return prefix .. "kv_bytes:" .. namespace end
function K.kv_of(namespace) return prefix .. "kv:" .. namespace end
function K.kv_versions_of(namespace) return prefix .. "kv_versions:" .. namespace end
function K.mapping(topic) return prefix .. "mapping:" .. topic end
function K.mappings_of(name) return prefix .. "mappings_of:" .. name end
function K.member(member) return prefix .. "member:" .. member end
function K.pending(name) return prefix .. "pending:" .. name end
function K.route(topic) return prefix .. "route:" .. topic end
function K.topics_of(name) return prefix .. "topics_of:" .. name end
