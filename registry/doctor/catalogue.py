"""The catalogue of findings that the store shows: how bad each is, why it comes about, what to do, which command."""

from typing import Final, Literal

import msgspec

Severity = Literal["error", "warning", "info"]
REDIS: Final = 'redis-cli -u "$REDIS_URL"'
HTTP: Final = '"$MQNS_HTTP"'
"""The HTTP side, in the variable that `mqns` reads too."""


class Rule(msgspec.Struct, frozen=True):
    """`error`: messages or lookups fail, or may at any time; `warning`: they will, or for some clients.

    In a command `{subject}` is the first subject, `{consumers}` the key of consumers' reports, and `{workers}` that of
    leases of workers, each quoted."""

    severity: Severity
    why: str
    advice: str
    command: str


RULES: Final = {
    "broker-drained": Rule(
        "warning",
        "They are being taken out of service: producers get no queue of them, consumers read what is left.",
        "As long as that is wanted, nothing. To end it: mqns undrain BROKER.",
        f"mqns drains --http {HTTP}",
    ),
    "broker-without-master": Rule(
        "error",
        "The master has ended or cannot register, or a controller has elected none: its topics can be read, but not "
        "written.",
        "Start the master again, or see why it does not register; in a controller group see which broker was elected.",
        "mqns brokers",
    ),
    "broker-gone": Rule(
        "warning",
        "Their processes, hosts or networks ended within the last day: connections were closed or lost, or leases "
        "ended without a heartbeat.",
        "See the broker's process, its log and its host. One that is not to come back is named for a day.",
        f"mqns events --kind broker_removed --broker {{subject}} --since 1d --http {HTTP}",
    ),
    "broker-refused": Rule(
        "error",
        "Another living broker has the same name and id, or the name in another cluster (identityConflicts=refuse), or "
        "the caller is not its owner (ownershipGuard): a configuration was copied, or the broker came back at another "
        "address while its old one counts as living.",
        'Change brokerName, brokerId or brokerClusterName of one ("Two brokers have one name, id or address" in '
        "docs/runbook.md), or stop or unregister the one that is not to be. What came back gets in by itself when the "
        "lease of the old one ends.",
        f"mqns events --kind conflict_seen --broker {{subject}} --since 1h --http {HTTP}",
    ),
    "broker-mirrored": Rule(
        "info",
        "They register with other name servers only. mqns mirror keeps them here, for the time of a migration: where "
        "it ends they leave routes within brokerTimeoutMillis (120 s).",
        'Once no client asks the other name servers, let the brokers register here ("Without double registration" in '
        "docs/migration.md); the mirror leaves those alone that do.",
        f"mqns brokers --http {HTTP}",
    ),
    "broker-wiped": Rule(
        "warning",
        "Their write permission was taken by request 205: by an operator, or by a broker that ends.",
        "As long as they are being taken out of service, nothing. To give it back: mqns permissions add BROKER.",
        "mqns permissions add {subject}",
    ),
    "topic-not-writable": Rule(
        "warning",
        "Their masters are gone, drained or wiped of write permission.",
        "See the findings of these brokers, or give them more write queues or the permission: mqadmin updateTopic.",
        "mqns topics --routes",
    ),
    "access-file-refused": Rule(
        "error",
        "It, or a secret that it names, was changed while the server runs, and has an error: what it had before stays "
        "in force, so new keys and tokens are not known. Processes that start with it do not serve.",
        "Correct the principal and the member that are named; each process takes it within two seconds, none has to "
        "be started again. On Kubernetes correct the Secret, and wait for the kubelet.",
        f"mqns access list --http {HTTP}",
    ),
    "discovery-loopback": Rule(
        "warning",
        "Clients and brokers whose only setting is this HTTP side's address learn their name servers from it. A "
        "loopback address leads those on other machines to themselves.",
        "Set discoveryAddress to what other machines reach, or bindAddress or advertiseAddress of the remoting "
        "workers; where no client asks /rocketmq/nsaddr, nothing.",
        f"curl -s {HTTP}/rocketmq/nsaddr",
    ),
    "limits-near": Rule(
        "warning",
        "The namespace grew, or a peer makes up names: at the limit what is new is refused, also a broker that left "
        "and comes back; what is there stays.",
        'Unregister what is made up ("A full namespace" in docs/runbook.md), or raise the option on all processes '
        '("Limits of growth" in docs/redis.md). KV: delete the keys of namespaces that no client needs, and an empty '
        "one gives its place to a new one. Where one host is a balancer with PROXY headers, list it in "
        "proxyTrustedCidrs.",
        f"curl -s {HTTP}/v1/limits",
    ),
    "store-unreadable": Rule(
        "error",
        "A key has another type than this server writes, or the user of the store lacks a right: what depends on it "
        "fails.",
        '"A key of a wrong type, rights that are missing" in docs/runbook.md; compare the rights with docs/redis.md.',
        f"{REDIS} acl log",
    ),
    "damaged-tables": Rule(
        "warning",
        "Something deletes or changes keys of the store: a person, a script, another program with the same keys, or a "
        "maxmemory-policy that evicts.",
        "Repair nothing by hand. Find out what changes the keys: the clients of Redis, the warnings of the scheduler, "
        'and "Damaged tables" in docs/runbook.md.',
        f"{REDIS} client list",
    ),
    "tables-not-compared": Rule(
        "warning",
        "No scheduler runs, or the store refuses it: damaged tables stay so meanwhile.",
        "See whether a scheduler runs, and what it logs.",
        "pgrep -af worker.jobs.scheduler",
    ),
    "jobs-late": Rule(
        "warning",
        "No scheduler enqueues them, no job worker runs them, or they fail. Routes are right without them; ends of "
        "leases are recorded late, slaves get no 905, and the event stream is not trimmed.",
        "See which of these processes run, and what they log. mqnamesrv starts those that have ended; end one that "
        "hangs by its id (scheduler-dead in docs/runbook.md).",
        "pgrep -af 'worker.jobs.scheduler|rq:worker'",
    ),
    "leases-held": Rule(
        "warning",
        "The store was away, or many leases ended at once (expiryHoldMillis): brokers stay in routes until they can "
        "have registered again.",
        "Wait for its end, if brokers may come back; if they are really dead, DELETE /v1/hold ends it now.",
        f"curl -s {HTTP}/v1/brokers",
    ),
    "lease-ending": Rule(
        "warning",
        "The broker hangs (pauses of GC), registers too rarely, or does not reach the name server. It leaves routes "
        "when its lease ends.",
        "See its broker.log, its pauses (GC), and registerNameServerPeriod (30 s; acting brokers send a heartbeat each "
        "second).",
        f"curl -s {HTTP}/v1/brokers",
    ),
    "worker-silent": Rule(
        "warning",
        "The worker stands still, does not reach the store, or was killed. While it stands still, clients and brokers "
        "with a connection to it get no answer, and new connections go to others.",
        "See its log and its process, whose id is the number before the last dot of its name. gunicorn replaces one "
        "that stands still for 30 s; if it stays, kill -KILL it by its id: a stopped process takes no other signal. A "
        "worker that has gone is named for a minute.",
        f"{REDIS} zrange {{workers}} 0 -1 withscores",
    ),
    "store-clock-back": Rule(
        "warning",
        "The clock was set, or a failover went to a machine whose clock is behind: brokers that fell silent just "
        "before stay in routes for up to a minute longer.",
        "Let the machines of the store follow a time server (NTP) that slews the clock and does not set it.",
        f"{REDIS} time",
    ),
    "follower-late": Rule(
        "error",
        "More is appended to the event stream than workers apply, another program writes to it, or the machine of the "
        "worker is too busy. From 5 s on its lookups ask the store, and changes are acknowledged unfollowed.",
        'See the lines of the workers\' logs about the event stream, and "Workers are behind the event stream" in '
        "docs/runbook.md. Do not restart workers: they would lose their caches.",
        f"{REDIS} acl list",
    ),
    "store-replica": Rule(
        "error",
        "A failover made another Redis the master, or redisUrl names a replica. It refuses writes (READONLY), so "
        "leases are held and not renewed, and routes that are stored go on.",
        "Point redisUrl at the master, or at the Sentinels, which know it (redis+sentinel://, docs/redis.md); if no "
        "other Redis is the master, make this one it (replicaof no one).",
        f"{REDIS} role",
    ),
    "store-full": Rule(
        "error",
        "The memory of Redis is used up, or nearly: then registrations, unregistrations and changes are refused, and "
        "leases are not renewed but held. Routes that are stored go on.",
        "Raise maxmemory at once, in the store's configuration file too; then find out what uses it "
        "(redis-full in docs/runbook.md).",
        f"{REDIS} info memory",
    ),
    "store-evicts": Rule(
        "warning",
        "maxmemory-policy is not noeviction: routes vanish when memory is short.",
        "Set it to noeviction, in the store's configuration file too; registrations are refused then, and brokers "
        "repeat them.",
        f"{REDIS} config set maxmemory-policy noeviction",
    ),
    "drift": Rule(
        "warning",
        "Brokers do not reach both name servers, or something was set at one of them only: clients of one get other "
        "routes than clients of the other.",
        "See what differs in the examples of the comparison; what to do about each is in what mqns doctor says of the "
        "same two name servers.",
        f"curl -s {HTTP}/v1/drift/{{subject}}",
    ),
    "drift-unreachable": Rule(
        "warning",
        "One of the two has ended, its network is lost, its store is away, or it refuses what the comparison needs: "
        "whether they agree is not known.",
        "Ask it with mqns doctor, from where the comparison runs.",
        f"curl -s {HTTP}/v1/drift/{{subject}}",
    ),
    "drift-stale": Rule(
        "warning",
        "The program that compares (mqns drift) has ended, hangs, or cannot report: whether the name servers agree is "
        "not known.",
        "Start it again, or see what it logs; of a comparison that is over, DELETE /v1/drift/NAME. A result that is "
        "not renewed goes after seven days.",
        f"curl -s {HTTP}/v1/drift/{{subject}}",
    ),
    "consumer-silent": Rule(
        "warning",
        "The program has ended or hangs. Trimming waits for it until it has been silent for a day, then entries that "
        "it has not go.",
        "Start it again; if it is gone for good, remove its report with HDEL (docs/runbook.md).",
        f"{REDIS} hgetall {{consumers}}",
    ),
}
