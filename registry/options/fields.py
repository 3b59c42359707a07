"""The fields of `Options`: each option's name, type, default and effect, declared once.

Names are Java's in snake case (`listenPort` is `listen_port`); Java's defaults are those of RocketMQ 5.5.0.
`Live` options change at once through request 318, `Start` options are read when a process starts, and
`listed` ones are accepted and shown but have no effect here, for the reason they give.
"""

from typing import Annotated, Literal

from msgspec import Struct

Effect = Literal["live", "start", "listed"]


class OptionInfo(Struct, frozen=True):
    """What an annotation says about an option; `key` only where it is not the field's name in camel case."""

    effect: Effect
    why: str = ""
    key: str = ""
    long: bool = False


def _live(why: str) -> OptionInfo:
    return OptionInfo("live", why)


def _start(why: str) -> OptionInfo:
    return OptionInfo("start", why)


POOLS = OptionInfo("listed", "a worker is one event loop without thread pools; see remotingWorkers")
PERMITS = OptionInfo("listed", "the server starts no requests of its own but oneway pushes from a job")
NETTY = OptionInfo("listed", "there is no Netty")
OUTGOING = OptionInfo("listed", "the name server keeps no outgoing connections")

UNSHARED = "of fewer than 64 one peer can have all"


class NamesrvOptions(Struct, frozen=True, kw_only=True):
    """NamesrvConfig, in Java's order."""

    rocketmq_home: Annotated[
        str, _start("folder that mqnamesrv wants named, as Java's does; nothing is read there")
    ] = ""
    kv_config_path: Annotated[str, _start("kvConfig.json that the first start on an empty store imports")] = (
        ""
    )
    config_store_path: Annotated[
        str, _start("the file of -c; listed only, changes of settings are written to the file itself")
    ] = ""
    product_env_name: Annotated[str, OptionInfo("listed", "see namesrvProductAddr")] = "center"
    cluster_test: Annotated[bool, _start("routes that are not here are asked of namesrvProductAddr")] = False
    order_message_enable: Annotated[
        bool, _live("routes of order topics have their order configuration (KV namespace ORDER_TOPIC_CONFIG)")
    ] = False
    return_order_topic_config_to_broker: Annotated[
        bool, _live("replies to registrations have the order topics")
    ] = True
    client_request_thread_pool_nums: Annotated[int, POOLS] = 8
    default_thread_pool_nums: Annotated[int, POOLS] = 16
    client_request_thread_pool_queue_capacity: Annotated[
        int, OptionInfo("start", f"lookups that may wait in a worker; {UNSHARED}")
    ] = 50000
    default_thread_pool_queue_capacity: Annotated[
        int, OptionInfo("start", f"other requests, and as many for lists; {UNSHARED}")
    ] = 10000
    scan_not_active_broker_interval: Annotated[
        int, OptionInfo("listed", "leases end by themselves; nothing waits for a scan", long=True)
    ] = 5000
    un_register_broker_queue_capacity: Annotated[int, OptionInfo("start", "unregistrations among these")] = (
        3000
    )
    support_acting_master: Annotated[
        bool, _live("a slave acts as master in routes while a broker has no master")
    ] = False
    enable_all_topic_list: Annotated[bool, _live("requests for the list of all topics are answered")] = True
    enable_topic_list: Annotated[
        bool, _live("requests for lists of topics of clusters, system and unit topics are answered")
    ] = True
    notify_min_broker_id_changed: Annotated[
        bool, _live("brokers are notified (905) when the least id of their name changes")
    ] = False
    enable_controller_in_namesrv: Annotated[bool, OptionInfo("listed", "no controller inside")] = False
    need_wait_for_service: Annotated[bool, _live("no routes for waitSecondsForService after the start")] = (
        False
    )
    wait_seconds_for_service: Annotated[
        int, _live("seconds without routes after a start, with needWaitForService")
    ] = 45
    delete_topic_with_broker_registration: Annotated[
        bool, _live("a registration removes the broker's topics that it does not name")
    ] = False
    config_black_list: Annotated[str, _start("options that request 318 refuses, ; separated")] = (
        "configBlackList;configStorePath;kvConfigPath"
    )


class NettyServerOptions(NamesrvOptions, frozen=True, kw_only=True):
    """NettyServerConfig, in Java's order."""

    bind_address: Annotated[str, _start("address that the remoting port listens on")] = "0.0.0.0"
    listen_port: Annotated[int, _start("port of the remoting side; 0 lets the system choose")] = 9876
    server_worker_threads: Annotated[int, POOLS] = 8
    server_callback_executor_threads: Annotated[int, POOLS] = 0
    server_selector_threads: Annotated[int, POOLS] = 3
    server_oneway_semaphore_value: Annotated[int, PERMITS] = 256
    server_async_semaphore_value: Annotated[int, PERMITS] = 64
    server_channel_max_idle_time_seconds: Annotated[
        int, _start("seconds after which an idle connection is closed")
    ] = 120
    server_socket_snd_buf_size: Annotated[
        int, _start("bytes of a connection's send buffer; 0 is the system's choice")
    ] = 0
    server_socket_rcv_buf_size: Annotated[
        int, _start("bytes of a connection's receive buffer; 0 is the system's choice")
    ] = 0
    write_buffer_high_water_mark: Annotated[int, OptionInfo("listed", "see writeBufferLimitBytes")] = 0
    write_buffer_low_water_mark: Annotated[int, OptionInfo("listed", "see writeBufferLimitBytes")] = 0
    server_socket_backlog: Annotated[int, _start("connections that may wait to be accepted")] = 1024
    server_netty_worker_group_enable: Annotated[bool, NETTY] = True
    server_pooled_byte_buf_allocator_enable: Annotated[bool, NETTY] = True
    enable_shutdown_gracefully: Annotated[
        bool, _start("a worker that ends first asks clients to go elsewhere, for shutdownWaitTimeSeconds")
    ] = False
    shutdown_wait_time_seconds: Annotated[int, _start("seconds that a worker has to end in order")] = 30
    use_epoll_native_selector: Annotated[bool, NETTY] = False


class NettyClientOptions(NettyServerOptions, frozen=True, kw_only=True):
    """NettyClientConfig: printed by `-p`, not listed by request 319."""

    client_worker_threads: Annotated[int, OUTGOING] = 4
    client_callback_executor_threads: Annotated[int, OUTGOING] = 2
    client_oneway_semaphore_value: Annotated[int, OUTGOING] = 65535
    client_async_semaphore_value: Annotated[int, OUTGOING] = 65535
    connect_timeout_millis: Annotated[int, OUTGOING] = 3000
    channel_not_active_interval: Annotated[int, OptionInfo("listed", OUTGOING.why, long=True)] = 60000
    is_scan_available_name_srv: Annotated[bool, OUTGOING] = True
    client_channel_max_idle_time_seconds: Annotated[int, OUTGOING] = 120
    client_socket_snd_buf_size: Annotated[int, OUTGOING] = 0
    client_socket_rcv_buf_size: Annotated[int, OUTGOING] = 0
    client_pooled_byte_buf_allocator_enable: Annotated[bool, OUTGOING] = False
    client_close_socket_if_timeout: Annotated[bool, OUTGOING] = True
    use_tls: Annotated[bool, OptionInfo("listed", OUTGOING.why, key="useTLS")] = False
    socks_proxy_config: Annotated[str, OUTGOING] = "{}"
    disable_callback_executor: Annotated[bool, OUTGOING] = False
    disable_netty_worker_group: Annotated[bool, OUTGOING] = False
    max_reconnect_interval_time_seconds: Annotated[int, OUTGOING] = 60
    enable_reconnect_for_go_away: Annotated[bool, OUTGOING] = True


def _tls(name: str, why: str) -> OptionInfo:
    return OptionInfo("start", why, key=f"tls.{name}")


def _tls_listed(name: str) -> OptionInfo:
    return OptionInfo("listed", OUTGOING.why, key=f"tls.{name}")


class TlsOptions(NettyClientOptions, frozen=True, kw_only=True):
    """Java's `tls.*` system properties (TlsSystemConfig); `tls.config.file` may name them too."""

    tls_test_mode_enable: Annotated[
        bool, _tls("test.mode.enable", "show a self-signed certificate, made at the start")
    ] = True
    tls_config_file: Annotated[
        str, _tls("config.file", "properties file whose entries tls.* come before all others")
    ] = "/etc/rocketmq/tls.properties"
    tls_server_mode: Annotated[
        str, _tls("server.mode", "disabled, permissive (with or without TLS) or enforcing")
    ] = "permissive"
    tls_server_need_client_auth: Annotated[
        str, _tls("server.need.client.auth", "none, optional or require: whether clients show a certificate")
    ] = "none"
    tls_server_key_path: Annotated[str, _tls("server.keyPath", "file of the private key (PEM)")] = ""
    tls_server_key_password: Annotated[str, _tls("server.keyPassword", "password of that key")] = ""
    tls_server_cert_path: Annotated[
        str, _tls("server.certPath", "file of the certificate and its chain (PEM)")
    ] = ""
    tls_server_auth_client: Annotated[bool, _tls("server.authClient", "look at clients' certificates")] = (
        False
    )
    tls_server_trust_cert_path: Annotated[
        str, _tls("server.trustCertPath", "file of the certificates that sign clients' (PEM)")
    ] = ""
    tls_client_key_path: Annotated[str, _tls_listed("client.keyPath")] = ""
    tls_client_key_password: Annotated[str, _tls_listed("client.keyPassword")] = ""
    tls_client_cert_path: Annotated[str, _tls_listed("client.certPath")] = ""
    tls_client_auth_server: Annotated[bool, _tls_listed("client.authServer")] = False
    tls_client_trust_cert_path: Annotated[str, _tls_listed("client.trustCertPath")] = ""
    tls_enable: Annotated[bool, _tls_listed("enable")] = False
    tls_ciphers: Annotated[str, _tls("ciphers", "ciphers that are accepted, by commas; empty: OpenSSL's")] = (
        ""
    )
    tls_protocols: Annotated[
        str, _tls("protocols", "versions of TLS that are accepted, by commas; empty: all from 1.2 on")
    ] = ""


def _own(why: str) -> OptionInfo:
    return OptionInfo("start", why, long=True)


class AccessOptions(TlsOptions, frozen=True, kw_only=True):
    """Who may ask what (docs/access.md). Rules are by default those of the profile."""

    proxy_trusted_cidrs: Annotated[
        str,
        _own("balancers whose PROXY headers give a peer's address, as 10.0.0.0/24; others' are not believed"),
    ] = "127.0.0.0/8,::1/128"
    proxy_required: Annotated[
        bool, _own("a peer of proxyTrustedCidrs that sends no PROXY header has no rights by its address")
    ] = False
    access_profile: Annotated[
        str,
        _own(
            "local, guarded, secure or java: what the options access… are that are not given; by default local where "
            "both ports listen on loopback only, else guarded"
        ),
    ] = "guarded"
    access_mode: Annotated[
        str,
        _own(
            "enforce the rules, or observe: answer as if there were none, log and count what would be refused"
        ),
    ] = "enforce"
    access_read: Annotated[str, _own("who may ask for routes, topics, clusters and KV: a rule")] = "open"
    access_broker: Annotated[str, _own("who may register brokers and their topics: a rule")] = "open"
    access_admin: Annotated[str, _own("who may change KV, topics, permissions and drains: a rule")] = (
        "loopback signed mtls token"
    )
    access_config: Annotated[str, _own("who may read and change settings, principals and tokens: a rule")] = (
        "loopback signed mtls token"
    )
    access_audit: Annotated[str, _own("who may read events, history, reports and findings: a rule")] = (
        "loopback mtls token"
    )
    access_metrics: Annotated[str, _own("who may read /metrics: a rule")] = "net token"
    access_networks: Annotated[str, _own("the networks that `net` means in a rule")] = (
        "127.0.0.0/8,::1/128,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7"
    )
    access_insecure: Annotated[
        bool, _own("start although anyone who reaches a port may change what operators change")
    ] = False
    access_file: Annotated[
        str, _own("TOML file of the principals: their roles, limits, keys and certificates")
    ] = ""
    ownership_guard: Annotated[
        bool, _own("a living broker's name and id are taken by its owner only (docs/access.md)")
    ] = False
    identity_conflicts: Annotated[
        str,
        _own(
            "what takes the id of another living address, or a living broker's name into a second cluster: report it, "
            "since Java's server lets it in, or refuse it (docs/runbook.md)"
        ),
    ] = "report"


class Options(AccessOptions, frozen=True, kw_only=True):
    """All options, resolved. Numbers of our own are bytes, milliseconds or counts, as their names say."""

    http_port: Annotated[int, _own("port of the HTTP side; 0 lets the system choose")] = 8080
    http_bind_address: Annotated[
        str, _own("address that the HTTP port listens on; 0.0.0.0 for other machines")
    ] = "127.0.0.1"
    http_allowed_hosts: Annotated[
        str,
        _own(
            "names by which browsers and scripts may ask the HTTP side, beside addresses, localhost and the machine's "
            "own: as ns.example.com,.svc.cluster.local; * is all"
        ),
    ] = ""
    http_reads_per_second: Annotated[
        int, _own("requests over HTTP that change nothing, of an actor or an address; 0 is unlimited")
    ] = 0
    http_writes_per_second: Annotated[
        int, _own("those that change something, of all HTTP workers together; 0 is unlimited")
    ] = 0
    metrics_port: Annotated[int, _own("port of the exporter of metrics, where one runs")] = 9464
    remoting_workers: Annotated[int, _own("processes that answer on listenPort")] = 2
    http_workers: Annotated[int, _own("processes that answer on httpPort")] = 1
    http_threads: Annotated[int, _own("threads of each of them")] = 4
    http_max_connections: Annotated[
        int, _own("connections of an HTTP worker; more: the one that waited longest is closed")
    ] = 4096
    http_max_watchers: Annotated[
        int, _own("watchers of an HTTP worker (/v1/watch), beside its connections; more are refused")
    ] = 10_000
    http_held_bytes: Annotated[
        int,
        _own("memory of an HTTP worker for requests under way and unread answers; more: the largest goes"),
    ] = 64 << 20
    http_head_max_bytes: Annotated[int, _own("longest head of a request")] = 64 << 10
    http_body_max_bytes: Annotated[int, _own("longest body of a request")] = 16 << 20
    http_idle_timeout_millis: Annotated[int, _own("how long a connection may be without a request")] = 75_000
    http_head_timeout_millis: Annotated[int, _own("how long a head may take from its first byte")] = 10_000
    http_body_timeout_millis: Annotated[int, _own("how long a body may take after its head")] = 30_000
    http_answer_timeout_millis: Annotated[int, _own("how long a peer may take to read an answer")] = 60_000
    http_trusted_proxies: Annotated[
        str, _own("proxies whose X-Forwarded-For names the client of a request over HTTP, as 10.0.0.0/24")
    ] = ""
    http_user_header: Annotated[
        str, _own("header in which these name the user, the actor of a change, as X-Forwarded-User")
    ] = ""
    discovery_address: Annotated[
        str,
        _own(
            "name servers that /rocketmq/nsaddr answers, as 10.0.0.1:9876;ns.example.com:9876; empty: the remoting "
            "workers that are ready"
        ),
    ] = ""
    discovery_units: Annotated[
        str,
        _own(
            "those of clients with a unit name, as blue=10.0.0.1:9876;10.0.0.2:9876,green=10.0.0.3:9876; other units "
            "have those of clients without one"
        ),
    ] = ""
    advertise_address: Annotated[
        str,
        _own(
            "host or host:port by which clients reach the remoting workers of this machine; empty: bindAddress, or "
            "where that is all addresses the one from which this machine sends"
        ),
    ] = ""
    namespace: Annotated[str, _own("one Redis may serve several name servers: ns:{namespace}:…")] = "default"
    data_dir: Annotated[str, _own("folder of the embedded store")] = ""
    redis_url: Annotated[str, _own("the store; empty starts an embedded one")] = ""
    redis_username: Annotated[str, _own("in the place of the one in redisUrl")] = ""
    redis_password: Annotated[str, _own("in the place of the one in redisUrl")] = ""
    redis_sentinel_username: Annotated[str, _own("for the Sentinels of redisUrl and rqRedisUrl")] = ""
    redis_sentinel_password: Annotated[str, _own("for the Sentinels of redisUrl and rqRedisUrl")] = ""
    allow_evicting_store: Annotated[
        bool, _own("start although the store's maxmemory-policy evicts keys when memory is short")
    ] = False
    rq_redis_url: Annotated[str, _own("the job queue's Redis, no Cluster; redisUrl if empty")] = ""
    rq_redis_username: Annotated[str, _own("in the place of the one in rqRedisUrl")] = ""
    rq_redis_password: Annotated[str, _own("in the place of the one in rqRedisUrl")] = ""
    broker_timeout_millis: Annotated[int, _own("lease of a broker that names no timeout of its own")] = (
        120_000
    )
    connection_loss_probe: Annotated[
        bool, _own("connect to a broker that lost its connection; off: gone")
    ] = True
    probe_timeout_millis: Annotated[int, _own("how long such a connect may take")] = 300
    probe_networks: Annotated[
        str,
        _own(
            "addresses to connect to (probe, 905) beside those that brokers come from, as 10.0.0.0/8,fd00::/8"
        ),
    ] = ""
    max_connections: Annotated[
        int, _own("connections of a remoting worker; 0, or more than files may be open: what those allow")
    ] = 20_000
    max_connections_per_ip: Annotated[
        int,
        _own("those of one address or IPv6 /64, balancers of proxyTrustedCidrs left out; 0 is unlimited"),
    ] = 0
    write_buffer_limit_bytes: Annotated[int, _own("unread answers of a connection before it is closed")] = (
        16 << 20
    )
    unread_answers_limit_bytes: Annotated[
        int,
        _own(
            "unread long answers of a remoting worker before the connection that has kept one longest is closed"
        ),
    ] = 64 << 20
    max_brokers: Annotated[int, _own("broker names of the namespace, drained ones as many again")] = 3_000
    max_members_of_broker: Annotated[int, _own("addresses of a broker name")] = 100
    max_clusters_of_broker: Annotated[int, _own("clusters that list a broker name")] = 16
    max_names_of_member: Annotated[int, _own("broker names that an address has in a cluster")] = 16
    max_owners_of_member: Annotated[
        int, _own("connections of a member that are noted; one more takes the place of another")
    ] = 16
    max_topics: Annotated[int, _own("topics of the namespace")] = 500_000
    max_topics_of_broker: Annotated[int, _own("topics of a broker name, static ones as many again")] = 100_000
    max_name_bytes: Annotated[
        int, _own("of a name of a broker, cluster, topic, zone, KV namespace or key")
    ] = 512
    max_address_bytes: Annotated[int, _own("of an address of a broker")] = 512
    max_entry_bytes: Annotated[
        int, _own("names and addresses that are stored of a broker name, or of a member, together")
    ] = 128 << 10
    max_filter_servers_bytes: Annotated[int, _own("filter servers of a member, as JSON")] = 2_048
    max_mapping_bytes: Annotated[int, _own("queues of a static topic on a broker, as JSON")] = 8_192
    max_kv_namespaces: Annotated[int, _own("KV namespaces, empty ones too")] = 200
    max_kv_keys: Annotated[int, _own("keys of a KV namespace")] = 1_000
    max_kv_value_bytes: Annotated[int, _own("of a KV value")] = 256 << 10
    max_kv_namespace_bytes: Annotated[int, _own("keys and values of a KV namespace together")] = 1 << 20
    max_percent_of_host: Annotated[
        int,
        _own("percent of maxBrokers and of maxTopics that the brokers of one host may take; 100: no limit"),
    ] = 50
    route_cache_bytes: Annotated[int, _own("encoded answers a remoting worker keeps")] = 64 << 20
    stale_serve_max_seconds: Annotated[
        int, _own("how long a worker cut off from the store answers routes as they were; 0 is without limit")
    ] = 0
    epoll_transport: Annotated[
        bool, _own("read and write in compiled code where it is built; off: uvloop's")
    ] = True
    proxy_protocol: Annotated[bool, _own("accept PROXY headers v1 and v2")] = True
    reply_encoding: Annotated[str, _own("header of replies: mirror (as asked) or json")] = "mirror"
    omit_v5_members: Annotated[bool, _own("leave 5.x members out of routes for clients before 5.0")] = False
    serialize_type: Annotated[str, _own("named in the boot line only; see replyEncoding")] = "JSON"
    namesrv_product_addr: Annotated[str, _own("name servers asked in clusterTest mode, ; separated")] = ""
    events_retention_millis: Annotated[int, _own("age after which events are trimmed")] = 24 * 3600 * 1000
    events_max_bytes: Annotated[int, _own("memory of the events stream before it is trimmed sooner")] = (
        256 << 20
    )
    events_heartbeats: Annotated[bool, _own("log each accepted heartbeat in the stream heartbeats")] = False
    expiry_hold_millis: Annotated[
        int, _own("how long a mass expiry keeps the leases that ended, at most; 0: not at all")
    ] = 0
    expiry_hold_share: Annotated[int, _own("percent of the members that it takes within 30 s")] = 10
    expiry_hold_least: Annotated[int, _own("members that it takes at least")] = 3
    pipeline_every_millis: Annotated[
        int, _own("how often `mqpipeline work` is to land events and report; 0 is never")
    ] = 0
    beat_file: Annotated[
        str, _own("file that the rq worker and the scheduler touch while their loops turn; empty: none")
    ] = ""
    check_address: Annotated[
        str,
        _own(
            "host:port of the remoting service, where a scheduler compares answers with the tables; empty: it does not"
        ),
    ] = ""
    log_format: Annotated[str, _own("of log lines: text, or json with an object a line")] = "text"
    log_level: Annotated[str, _own("least level of log lines: debug, info, warning or error")] = "info"
    access_log: Annotated[bool, _own("log each request over HTTP")] = False
    traces: Annotated[
        bool, _own("record spans for OpenTelemetry, as its variables OTEL_… say; needs the extra otel")
    ] = False
    rewritten_file: str = ""
    """The -c file into which the supervisor writes settings that change, for its next start; empty without one."""
    listing_also: tuple[tuple[str, str], ...] = ()
    """(key, text) that only request 319 shows: unknown keys of the -c file, and Start options set by 318."""
    sources: tuple[tuple[str, str], ...] = ()
    """(attribute, source) of the values that are not the defaults of the catalogue."""
    without_effect: tuple[str, ...] = ()
    """A sentence for each variable and each entry of the -c file that has no effect."""
