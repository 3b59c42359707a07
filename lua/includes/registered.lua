--- @include "tables"
-- Appends broker_registered: a member entered under a broker name. topics: how many the broker has; also: JSON of the
-- member's other names whose routes change with it, false for none
local function emit_registered(ctx, broker, member, id, cause, topics, also)
  local fields, cluster = member.fields, cluster_of(member.key)
  emit(ctx, "broker_registered", cause, {
    "cluster", cluster, "broker", broker.name, "id", id, "addr", address_of(member.key), "epoch", broker.epoch,
    "group_cluster", broker.cluster ~= cluster and broker.cluster,
    "also", also, "addrs", addrs_json(broker), "ha", fields.ha or "", "timeout_ms", fields.timeout,
    "filters", fields.filters or false, "zone", broker.zone or false, "acting", broker.acting,
    "dv", fields.dv or false, "mirrored", fields.mirrored or false, "topics", topics,
  })
end
