"""Requests drawn at random: those of peers, now and then with one oddity."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from rocketmq_remoting.codes import RequestCode
from testbed.broker import as_json
from tests.differential.bodies import LAYOUTS, ODDITIES, RIGHT, WRAPPER
from tests.differential.world import Ask, Registration

CLUSTERS = ("@c0", "@c1")
NAMES = ("@b0", "@b1", "@b2")
IDS = (0, 1, 2)
ADDRESSES = tuple(f"~{index}" for index in range(1, 10))
TOPICS = ("@t0", "@t1", "@t2", "@t3", "@t4")
VERSIONS_4X = (317, 373, 399, 400, 401)
VERSIONS_5X = (413, 479, 513, 700)
TIMEOUT_MS = "60000"
ORDER = "ORDER_TOPIC_CONFIG"
UNKNOWN_CODES = (0, 34, 47, 99, 902, 903, 905, 99999, -3)
Draw = Callable[[st.SearchStrategy[Any]], Any]


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def rarely(draw: Draw, one_in: int) -> bool:
    """Draw True once in so many times; shrinks to False."""
    return bool(draw(st.integers(0, one_in - 1)) == one_in - 1)


def home(name: str, number: int) -> str:
    """Return the address of the member of that name and id."""
    return ADDRESSES[NAMES.index(name) * len(IDS) + number]


def connection_of(addr: str | None) -> int:
    """Return the number of a broker's own connection."""
    return int(addr[1:]) if addr in ADDRESSES else 0


def _present(ext: dict[str, str | None]) -> dict[str, str]:
    return {field: text for field, text in ext.items() if text is not None}


TOPIC = st.fixed_dictionaries(
    {
        "readQueueNums": one_of(8, 4),
        "writeQueueNums": one_of(8, 1),
        "perm": one_of(6, 4, 2, 7, 0),
        "topicSysFlag": one_of(0, 0, 1, 2, 3),
    }
)
FieldOddities = dict[str, dict[str, str | None]]
UNTYPED: FieldOddities = {
    "no brokerId": {"brokerId": None},
    "brokerId in words": {"brokerId": "one"},
    "brokerId with a sign": {"brokerId": "+1"},
    "brokerId below 0": {"brokerId": "-1"},
    "brokerId beyond 64 bits": {"brokerId": "9223372036854775808"},
    "brokerId with a blank": {"brokerId": " 1"},
}
NAMELESS: FieldOddities = {
    "no brokerName": {"brokerName": None},
    "no brokerAddr": {"brokerAddr": None},
    "no clusterName": {"clusterName": None},
}
UNCLUSTERED: FieldOddities = {"no clusterName": NAMELESS["no clusterName"]}
"""Of a registration without name or address 5.5.0 keeps a null for ever: 304 is empty then, and removals fail."""
REGISTRATION_ODDITIES: FieldOddities = {
    "no haServerAddr": {"haServerAddr": None},
    "empty haServerAddr": {"haServerAddr": ""},
    "wrong checksum": {"bodyCrc32": "1"},
    "checksum 0": {"bodyCrc32": "0"},
    "checksum in words": {"bodyCrc32": "abc"},
    "checksum beyond 32 bits": {"bodyCrc32": "4294967296"},
    "compressed in capitals": {"compressed": "FALSE"},
    "compressed in other words": {"compressed": "no"},
    "no compressed": {"compressed": None},
    "unknown fields": {"unknown": "é中", "ns": "x"},
}
REGISTRATION_ODDITIES_5X: FieldOddities = {
    "acting in capitals": {"enableActingMaster": "TRUE"},
    "acting in other words": {"enableActingMaster": "1"},
    "empty acting": {"enableActingMaster": ""},
    "empty zone": {"__ZONE_NAME": ""},
    "time-out in words": {"heartbeatTimeoutMillis": "soon"},
}


@st.composite
def registrations(draw: Draw, four: bool) -> Ask:
    """REGISTER_BROKER; most are what a broker sends."""
    says = _saying(draw, four)
    versions = (0, 36) if rarely(draw, 20) else VERSIONS_4X if four else VERSIONS_4X + VERSIONS_5X
    version = draw(one_of(*versions))
    whole, says = _whole(draw, says, four)
    ext: dict[str, str | None] = {
        "brokerName": says.name,
        "brokerAddr": says.addr,
        "clusterName": says.cluster,
        "haServerAddr": f"ha-{says.addr}",
        "brokerId": str(says.id),
        "compressed": "false",
        "bodyCrc32": RIGHT,
    }
    if says.acting is not None:
        ext["enableActingMaster"] = str(says.acting).lower()
    if says.zone is not None:
        ext["__ZONE_NAME"] = says.zone
    if not four:
        ext["heartbeatTimeoutMillis"] = TIMEOUT_MS
    ask = Ask(
        RequestCode.REGISTER_BROKER,
        version=version,
        binary=rarely(draw, 5),
        oneway=rarely(draw, 20),
        over=connection_of(draw(one_of(*ADDRESSES)) if rarely(draw, 15) else says.addr),
    )
    zipped = version >= 37 and rarely(draw, 5)
    ask = _packed(draw, ask, says, whole, ext) if zipped else _plain(draw, ask, says, whole)
    if rarely(draw, 8):
        return _odd_fields(draw, ask, ext, four)
    return replace(ask, ext=_present(ext))


def _saying(draw: Draw, four: bool) -> Registration:
    name, number = draw(one_of(*NAMES)), draw(one_of(0, 0, 1, 2))
    addr = draw(one_of(*ADDRESSES)) if rarely(draw, 12) else home(name, number)
    cluster = CLUSTERS[1] if rarely(draw, 16) else CLUSTERS[0]
    acting = None if four else draw(one_of(None, False, False, True))
    zone = None if four else draw(one_of(None, None, "z1", "Z2"))
    return Registration(cluster, name, addr, number, acting, zone)


def _whole(draw: Draw, says: Registration, four: bool) -> tuple[dict[str, Any], Registration]:
    """Draw a RegisterBrokerBody and its registration."""
    state = 0 if four else draw(one_of(0, 0, 0, 1, 2))
    stamp = (state, draw(one_of(1000, 1001)), draw(one_of(1, 2, 3)))
    topics = draw(st.lists(one_of(*TOPICS), unique=True, min_size=0, max_size=4))
    if len(topics) == 1 and not rarely(draw, 4):
        topics = []  # where a single topic is refused, the tables of Java's servers and ours part
    wrapper: dict[str, Any] = {
        "dataVersion": {"counter": stamp[2], "timestamp": stamp[1]}
        | ({"stateVersion": state} if state else {}),
        "topicConfigTable": {
            topic: draw(TOPIC) | {"topicName": topic, "order": False, "topicFilterType": "SINGLE_TAG"}
            for topic in topics
        },
    }
    infos: tuple[tuple[str, str], ...] = ()
    if not four and rarely(draw, 5):
        topic = draw(one_of(*TOPICS))
        bname = draw(one_of(*NAMES)) if rarely(draw, 4) else says.name
        infos = ((topic, bname),)
        wrapper["topicQueueMappingInfoMap"] = {topic: _mapping_info(topic, bname, draw(one_of(1, 2)))}
    filters = draw(one_of(None, [], [], ["f:1"], ["f:1", "f:2"]))
    whole = {"filterServerList": filters, WRAPPER: wrapper}
    return whole, replace(says, topics=tuple(wrapper["topicConfigTable"]), version=stamp, infos=infos)


def _mapping_info(topic: str, bname: str, epoch: int) -> dict[str, Any]:
    return {
        "bname": bname,
        "currIdMap": {"0": 0, "1": 1},
        "dirty": False,
        "epoch": epoch,
        "scope": "__global__",
        "topic": topic,
        "totalQueues": 2,
    }


def _packed(
    draw: Draw, ask: Ask, says: Registration, whole: dict[str, Any], ext: dict[str, str | None]
) -> Ask:
    packing = draw(one_of(*LAYOUTS)) if rarely(draw, 5) else "zlib"
    if packing != "zlib unannounced":
        ext["compressed"] = "true"
    if ask.version < 413:
        says = replace(says, infos=())
    readable = packing not in ("zlib cut", "raw deflate", "plain announced")
    return replace(ask, body=_text(whole), packing=packing, says=says if readable else None)


def _plain(draw: Draw, ask: Ask, says: Registration, whole: dict[str, Any]) -> Ask:
    if ask.version < 37:
        whole = whole[WRAPPER] if not rarely(draw, 4) else whole
        if WRAPPER in whole:
            says = replace(says, topics=(), infos=(), version=None)
        return replace(ask, body=_text(whole), says=says)
    if not rarely(draw, 6):
        return replace(ask, body=_text(whole), says=says)
    odd = ODDITIES[draw(one_of(*ODDITIES))]
    whole = deepcopy(whole)
    odd.edit(whole)
    return replace(
        ask, body=odd.rewrite(_text(whole)), says=replace(says, **odd.says) if odd.readable else None
    )


def _odd_fields(draw: Draw, ask: Ask, ext: dict[str, str | None], four: bool) -> Ask:
    kinds = [UNTYPED, REGISTRATION_ODDITIES, REGISTRATION_ODDITIES]
    if not four:
        kinds += [UNCLUSTERED, REGISTRATION_ODDITIES_5X]
    odd = draw(st.sampled_from(kinds))
    ext = ext | odd[draw(one_of(*odd))]
    says = ask.says
    if says is not None:
        number = ext["brokerId"]
        says = replace(says, id=int(number)) if number in ("0", "1", "2", "+1", "-1") else None
    if odd is UNCLUSTERED:
        says = None
    if says is not None and "enableActingMaster" in ext:
        says = replace(says, acting=(ext["enableActingMaster"] or "").lower() == "true")
    return replace(ask, ext=_present(ext), says=says)


def _text(value: Any) -> str:
    return as_json(value).decode()


# -- all others


@st.composite
def unregistrations(draw: Draw, four: bool) -> Ask:
    """UNREGISTER_BROKER."""
    name, number = draw(one_of(*NAMES)), draw(one_of(*IDS))
    ext: dict[str, str | None] = {
        "brokerName": name,
        "brokerAddr": draw(one_of(*ADDRESSES)) if rarely(draw, 8) else home(name, number),
        "clusterName": CLUSTERS[1] if rarely(draw, 12) else CLUSTERS[0],
        "brokerId": str(draw(one_of(*IDS)) if rarely(draw, 8) else number),
    }
    if not four and rarely(draw, 12):
        odd = draw(one_of(UNTYPED, NAMELESS))
        ext |= odd[draw(one_of(*odd))]
    over = connection_of(draw(one_of(*ADDRESSES)) if rarely(draw, 6) else ext["brokerAddr"])
    return Ask(
        RequestCode.UNREGISTER_BROKER,
        _present(ext),
        binary=rarely(draw, 5),
        oneway=rarely(draw, 20),
        over=over,
    )


@st.composite
def route_queries(draw: Draw, four: bool) -> Ask:
    """GET_ROUTEINFO_BY_TOPIC."""
    ext: dict[str, str | None] = {"topic": draw(one_of(*TOPICS, "@unknown", "@é中", "", None))}
    if rarely(draw, 4):
        ext["acceptStandardJsonOnly"] = draw(one_of("true", "TRUE", "false", "1", ""))
    if not four and rarely(draw, 3):
        ext["__ZONE_MODE"] = draw(one_of("true", "True", "false", "1", None))
        ext["__ZONE_NAME"] = draw(one_of("z1", "Z1", "z2", "nowhere", " ", "", None))
    version = draw(one_of(*VERSIONS_4X, *VERSIONS_5X, 0, -1))
    code = RequestCode.GET_ROUTEINFO_BY_TOPIC
    return Ask(code, _present(ext), version=version, binary=rarely(draw, 4), oneway=rarely(draw, 20))


@st.composite
def heartbeats(draw: Draw, four: bool) -> Ask:
    """QUERY_DATA_VERSION, BROKER_HEARTBEAT and GET_BROKER_MEMBER_GROUP."""
    name, number = draw(one_of(*NAMES)), draw(one_of(*IDS))
    codes = [RequestCode.QUERY_DATA_VERSION] * 2
    codes += [] if four else [RequestCode.BROKER_HEARTBEAT, RequestCode.GET_BROKER_MEMBER_GROUP]
    code = draw(st.sampled_from(codes))
    ext: dict[str, str | None] = {
        "brokerName": name,
        "brokerAddr": draw(one_of(*ADDRESSES)) if rarely(draw, 8) else home(name, number),
        "clusterName": CLUSTERS[1] if rarely(draw, 10) else CLUSTERS[0],
        "brokerId": str(number),
    }
    if not four and rarely(draw, 8):
        ext |= draw(st.sampled_from([*NAMELESS.values(), *UNTYPED.values()]))
    body = ""
    if code == RequestCode.QUERY_DATA_VERSION:
        body = _text({"counter": draw(one_of(1, 2, 3)), "timestamp": draw(one_of(1000, 1001))})
        if not four and rarely(draw, 4):
            body = draw(
                one_of(
                    "",
                    "{}",
                    "null",
                    "not json",
                    "[]",
                    '{"counter":1,"stateVersion":1,"timestamp":1000}',
                    '{"counter":null,"timestamp":1000}',
                    '{"counter":"1","timestamp":"1000"}',
                )
            )
    return Ask(code, _present(ext), body, binary=rarely(draw, 5), oneway=rarely(draw, 15))


@st.composite
def listings(draw: Draw, four: bool) -> Ask:
    """The lists of topics, clusters and brokers, and the configuration."""
    code = draw(one_of(106, 206, 224, 224, 304, 311, 312, 313, 319))
    ext = {}
    if code == 224:
        ext["cluster"] = draw(one_of(*CLUSTERS, "@nowhere", None))
    return Ask(
        code,
        _present(ext) or draw(one_of(None, {})),
        version=draw(one_of(0, 373, 513)),
        binary=rarely(draw, 4),
    )


@st.composite
def permission_changes(draw: Draw, four: bool) -> Ask:
    """WIPE_WRITE_PERM_OF_BROKER and ADD_WRITE_PERM_OF_BROKER."""
    return Ask(
        draw(one_of(205, 327)), _present({"brokerName": draw(one_of(*NAMES, *NAMES, "@unknown", None))})
    )


@st.composite
def topic_changes(draw: Draw, four: bool) -> Ask:
    """DELETE_TOPIC_IN_NAMESRV and REGISTER_TOPIC_IN_NAMESRV."""
    topic = draw(one_of(*TOPICS, *TOPICS, *TOPICS, "@new", None))
    if four or draw(st.booleans()):
        cluster = draw(one_of(None, None, "", *CLUSTERS, "@nowhere"))
        return Ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, _present({"topic": topic, "clusterName": cluster}))
    names = draw(st.lists(one_of(*NAMES, "@unknown"), max_size=3))
    rows = [
        {
            "brokerName": name,
            "perm": draw(one_of(6, 4)),
            "readQueueNums": 3,
            "writeQueueNums": 3,
            "topicSysFlag": 0,
        }
        for name in names
    ]
    body = _text({"brokerDatas": [], "queueDatas": rows})
    if rarely(draw, 5):
        body = draw(
            one_of(
                "",
                "{}",
                "null",
                "not json",
                '{"queueDatas":null}',
                '{"queueDatas":[null]}',
                '{"queueDatas":[{"brokerName":"@b0"}]}',
                '{"queueDatas":[{"perm":6}]}',
                '{"brokerDatas":[{"brokerAddrs":{0:"a:1"},"brokerName":"@b0","cluster":"@c0"}],'
                '"queueDatas":[{"brokerName":"@b0","perm":4,"readQueueNums":1}]}',
            )
        )
    return Ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, _present({"topic": topic}), body)


@st.composite
def kv_requests(draw: Draw, four: bool) -> Ask:
    """PUT_KV_CONFIG, GET_KV_CONFIG, DELETE_KV_CONFIG and GET_KVLIST_BY_NAMESPACE."""
    ext = {
        "namespace": draw(one_of("@n0", "@n1", ORDER, ORDER, None)),
        "key": draw(one_of(*TOPICS[:2], "@k:1", "@é中", None)),
    }
    code = draw(one_of(100, 100, 101, 102, 219))
    if code == 100:
        ext["value"] = draw(one_of("@b0:4", "@b0:4;@b1:4", "", ' "=\n', "é中😀", None))
    return Ask(code, _present(ext), binary=rarely(draw, 5))


CONFIGURATIONS_4X = (
    "orderMessageEnable=true\n",
    "orderMessageEnable = false",
    "orderMessageEnable:TRUE\n",
    "# only a comment\n",
    "noSuchKey=1\n",
    "orderMessageEnable=yes",
    "listenPort=abc\n",
    "a=\\u12\n",
    "kvConfigPath=/nowhere\n",
    "orderMessageEnable=true\nkvConfigPath=/nowhere\n",
    "",
)
CONFIGURATIONS_5X = (
    "supportActingMaster=true\n",
    "supportActingMaster=false\n",
    "deleteTopicWithBrokerRegistration=true\n",
    "deleteTopicWithBrokerRegistration=false\n",
    "returnOrderTopicConfigToBroker=false\n",
    "enableTopicList=false\nenableAllTopicList=false\n",
    "enableTopicList=true\nenableAllTopicList=true\n",
    "rocketmqHome=/nowhere\n",
    "configBlackList=x\n",
    "configStorePath=/nowhere",
)


@st.composite
def configurations(draw: Draw, four: bool) -> Ask:
    """UPDATE_NAMESRV_CONFIG."""
    return Ask(318, body=draw(one_of(*CONFIGURATIONS_4X, *(() if four else CONFIGURATIONS_5X))))


@st.composite
def unknown_requests(draw: Draw, four: bool) -> Ask:
    """Codes that a name server does not know; 4.x answers them with silence."""
    return Ask(draw(one_of(*UNKNOWN_CODES)), draw(one_of(None, {"topic": "@t0"})), binary=rarely(draw, 3))
