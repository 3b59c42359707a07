"""Every key of a namespace, by name: the one catalogue (docs/keys.md explains them to operators).

    ns:{<namespace>}:clusters               set     cluster names
    ns:{<namespace>}:cluster:<name>         set     broker names of a cluster
    ns:{<namespace>}:brokers                set     broker names
    ns:{<namespace>}:broker:<name>          hash    epoch, gen, cluster, acting, zone, in:<cluster>, addr:<id>
    ns:{<namespace>}:epoch                  string  the last epoch given to a broker
    ns:{<namespace>}:pending:<name>         string  claim of a first registration in several scripts (short TTL)
    ns:{<namespace>}:alive:<cluster>:<addr> string  end of the lease (ms), or up to an eighth of a time-out less
    ns:{<namespace>}:member:<cluster>:<addr> hash   what the member registered; outlives the lease
    ns:{<namespace>}:leases                 zset    <cluster>:<addr> -> end of the lease (ms, Redis clock)
    ns:{<namespace>}:lapses                 zset    members gone by a lapse just now -> its ms (short TTL)
    ns:{<namespace>}:topics                 set     topic names
    ns:{<namespace>}:route:<topic>          hash    broker name -> epoch,readQ,writeQ,perm,sysFlag
    ns:{<namespace>}:mapping:<topic>        hash    broker name -> epoch,<TopicQueueMappingInfo as JSON>
    ns:{<namespace>}:topics_of:<name>       hash    topic -> the same text as in route:<topic>
    ns:{<namespace>}:mappings_of:<name>     hash    topic -> the same text as in mapping:<topic>
    ns:{<namespace>}:drains                 hash    broker name -> {"owner","reason","until_ms","since_ms"}
    ns:{<namespace>}:drains:ends            zset    broker name -> end of its drain (ms)
    ns:{<namespace>}:owed                   hash    pending clean-up of removals
    ns:{<namespace>}:workers                zset    worker id -> end of its lease (ms)
    ns:{<namespace>}:announced              zset    <host:port> <worker id> -> when it was ready last (ms; short TTL)
    ns:{<namespace>}:kv                     set     KV namespaces, empty ones too
    ns:{<namespace>}:kv:<KV namespace>      hash    key -> value
    ns:{<namespace>}:kv_bytes:<KV namespace> string how many bytes it has, as counted (short TTL)
    ns:{<namespace>}:kv_versions:<KV namespace> hash key -> id of the entry of its last change
    ns:{<namespace>}:settings               hash    name server configuration shared by all workers
    ns:{<namespace>}:settings:given         hash    what the last start gave for each of them
    ns:{<namespace>}:access:tokens          hash    token id -> {"hash","principal","created_ms","expires_ms",…}
    ns:{<namespace>}:access:revoked         hash    id of a credential or principal -> {"at_ms","by"}; since
    ns:{<namespace>}:access:used            hash    id of a credential -> Unix minute of its last use
    ns:{<namespace>}:access:sessions        string  the key that seals the cookies of the console
    ns:{<namespace>}:access:reported        hash    "rules" -> those in force, end:<credential> -> its end (ms)
    ns:{<namespace>}:events                 stream  every change a client could see
    ns:{<namespace>}:events:meta            hash    inc, seq, renew_ms, tick_ms, follow_ms, behind_ms, started_ms, holds
    ns:{<namespace>}:events:offsets         zset    entry -> bytes appended up to it: where scripts trim the stream
    ns:{<namespace>}:events:groups          stream  members that entered and left, by which 905 is pushed (short TTL)
    ns:{<namespace>}:events:consumers       hash    consumer -> {"id","seq","at_ms","hold"}: what is safe with it
    ns:{<namespace>}:events:landing:<consumer> string  the process that lands the stream (short TTL), from mqpipeline
    ns:{<namespace>}:events:summaries       stream  what blocks of entries name: by it readers skip blocks (TTL 1 day)
    ns:{<namespace>}:events:asked           hash    cause -> actor that requested a checkpoint round, and when
    ns:{<namespace>}:events:round           hash    state of the checkpoint round under way, or the last one
    ns:{<namespace>}:events:round:left      set     names that are not written yet
    ns:{<namespace>}:audit                  stream  copies of operators' events, same ids
    ns:{<namespace>}:heartbeats             stream  an entry a heartbeat, if these are kept
    ns:{<namespace>}:repair                 hash    what walks over the tables repaired, and the last one
    ns:{<namespace>}:repair:walker          string  the process that walks (short TTL)
    ns:{<namespace>}:tasks                  hash    periodic job -> <end of its last success in ms>,<period in s>
    ns:{<namespace>}:topic_counts           string  topics and queues of each cluster, for metrics (TTL 10 min)
    ns:{<namespace>}:doctor                 string  findings of the name server about itself, counted (TTL 10 min)
    ns:{<namespace>}:gone                   zset    members that left without unregistering -> its ms (TTL 1 day)
    ns:{<namespace>}:refused                zset    what was refused about brokers of others -> its ms (TTL 1 h)
    ns:{<namespace>}:drift                  hash    comparison of name servers -> its last result (TTL 7 days)
    ns:{<namespace>}:http_writes:<caller>   string  how many writes it sent over HTTP just now (short TTL)
    ns:{<namespace>}:access_denied:<actor>:<operation> string how often it was refused just now (short TTL)
    ns:{<namespace>}:absent                 never there (`guard_of`)
    ns:{<namespace>}:pushed:<event id>      string  set by the process that pushes 905 for this event (short TTL)
    ns:{<namespace>}:report:meta            hash    the run that made the reports, what it saw, the names of its keys
    ns:{<namespace>}:report:<report>        hash or zset (mqpipeline/reports/catalogue.py)

The braces keep all of them in one cluster slot, so that one script may touch several.
"""

import re
from dataclasses import dataclass, field

from registry.errors import InvalidField

ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"  # the KV namespace of order topics
NAMESPACE = re.compile(r"[A-Za-z0-9._-]+")


def member_key(cluster: str, address: str) -> str:
    """Return `<cluster>:<addr>`, the cluster's `%` and `:` percent-encoded so that the first `:` parts the two."""
    return f"{cluster.replace('%', '%25').replace(':', '%3A')}:{address}"


def split_member_key(key: str) -> tuple[str, str]:
    """Return (cluster, address); the inverse of `member_key`."""
    cluster, _, address = key.partition(":")
    return cluster.replace("%3A", ":").replace("%25", "%"), address


def guard_of(key: str) -> str:
    """Return a key that never exists, of the namespace of `key`.

    On a Cluster every script names it: while the slot moves from one server to another, both refuse a call of which
    any key is missing, and so no script sees half a table."""
    return f"{key[: key.index('}')]}}}:absent"


class _Key:
    """A key that a namespace has once, by what comes after its prefix."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, keys: "Keys", _: type) -> str:
        return keys.prefix + self._name


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one namespace; raises InvalidField for a name that would break the hash tag."""

    namespace: str = "default"
    prefix: str = field(init=False)

    def __post_init__(self) -> None:
        if not NAMESPACE.fullmatch(self.namespace):
            raise InvalidField("namespace", f"{self.namespace!r} is not of [A-Za-z0-9._-]+")
        object.__setattr__(self, "prefix", f"ns:{{{self.namespace}}}:")

    clusters = _Key("clusters")
    brokers = _Key("brokers")
    epoch = _Key("epoch")
    leases = _Key("leases")
    lapses = _Key("lapses")
    topics = _Key("topics")
    drains = _Key("drains")
    drain_ends = _Key("drains:ends")
    deferred = _Key("owed")
    workers = _Key("workers")
    announced = _Key("announced")
    kv_namespaces = _Key("kv")
    settings = _Key("settings")
    settings_given = _Key("settings:given")
    access_tokens = _Key("access:tokens")
    access_revoked = _Key("access:revoked")
    access_used = _Key("access:used")
    access_reported = _Key("access:reported")
    access_sessions = _Key("access:sessions")
    events = _Key("events")
    events_meta = _Key("events:meta")
    events_offsets = _Key("events:offsets")
    group_events = _Key("events:groups")
    events_consumers = _Key("events:consumers")
    event_summaries = _Key("events:summaries")
    events_asked = _Key("events:asked")
    events_round = _Key("events:round")
    events_round_left = _Key("events:round:left")
    audit = _Key("audit")
    heartbeats = _Key("heartbeats")
    repair = _Key("repair")
    repair_walker = _Key("repair:walker")
    tasks = _Key("tasks")
    topic_counts = _Key("topic_counts")
    doctor = _Key("doctor")
    gone = _Key("gone")
    refused = _Key("refused")
    drift = _Key("drift")

    def cluster(self, name: str) -> str:
        return f"{self.prefix}cluster:{name}"

    def broker(self, name: str) -> str:
        return f"{self.prefix}broker:{name}"

    def pending(self, name: str) -> str:
        return f"{self.prefix}pending:{name}"

    def alive(self, member: str) -> str:
        return f"{self.prefix}alive:{member}"

    def member(self, member: str) -> str:
        return f"{self.prefix}member:{member}"

    def route(self, topic: str) -> str:
        return f"{self.prefix}route:{topic}"

    def mapping(self, topic: str) -> str:
        return f"{self.prefix}mapping:{topic}"

    def topics_of(self, name: str) -> str:
        return f"{self.prefix}topics_of:{name}"

    def mappings_of(self, name: str) -> str:
        return f"{self.prefix}mappings_of:{name}"

    def kv(self, namespace: str) -> str:
        return f"{self.prefix}kv:{namespace}"

    def pushed(self, event_id: str) -> str:
        return f"{self.prefix}pushed:{event_id}"

    def http_writes(self, caller: str) -> str:
        return f"{self.prefix}http_writes:{caller}"

    def access_denied(self, actor: str, operation: str) -> str:
        return f"{self.prefix}access_denied:{actor}:{operation}"

    def report(self, name: str) -> str:
        return f"{self.prefix}report:{name}"
