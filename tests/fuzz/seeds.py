"""Where fuzzing begins: what RocketMQ's own brokers and clients sent, and what `access_seeds` has."""

import zlib
from collections.abc import Iterable

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.header_binary import encode_binary_header
from rocketmq_remoting.header_json import encode_json_header
from tests.fuzz.access_seeds import ACCESS_SEEDS, PROXY
from tests.rocketmq_remoting.golden import NAMES, recorded, replies, requests
from tests.worker.cache.both_ways import KINDS, LOOKUPS, TOPICS, lookup, request

PROPERTIES = (b"kvConfigPath=/a/b\\\n c\nlistenPort:9876\n# c\nx=\\u00e9\\t\\\\\n", b"a b\r\n!x\n=\n")
TOLERANT = (b"""/*c*/{'table':{a:'\\x41\\'',"b":"c\t",}}//e""", b'{"table":{0:"a","b":null}}')
FEW = 32


def seeds(target: str, largest: int) -> list[bytes]:
    """The shortest inputs of that target, of at most `largest` bytes each."""
    every = ACCESS_SEEDS[target]() if target in ACCESS_SEEDS else _all(target)
    found = {bytes(seed) for seed in every if len(seed) <= largest}
    return sorted(found, key=lambda seed: (len(seed), seed))[:FEW]


def _all(target: str) -> Iterable[bytes]:
    commands = [r.command for name in NAMES for r in recorded(name)]
    bodies = [command.body for command in requests(RequestCode.REGISTER_BROKER)]
    match target:
        case "frames":
            return [b"\x07" + encode(command) for command in commands]
        case "cached_requests":
            asked = [
                encode(request(opaque, kind, topic))
                for opaque in (7, 10)
                for kind in KINDS
                for topic in TOPICS
            ]
            asked += [
                encode(lookup(opaque, kind, topic, fields))
                for opaque in (7, 10)
                for kind in KINDS
                for topic, fields in LOOKUPS.items()
            ]
            return [b"\xff" + one for one in asked] + [b"\x06" + b"".join(asked)]
        case "json_header":
            return map(encode_json_header, commands)
        case "binary_header":
            return map(encode_binary_header, commands)
        case "json_registration" | "signature":
            return bodies
        case "old_registration":
            return [body.partition(b'"topicConfigSerializeWrapper":')[2][:-1] for body in bodies]
        case "compressed_registration":
            return [body for body in bodies if body[:1] == b"\x78"]
        case "inflated_registration":
            return [zlib.decompress(body) for body in bodies if body[:1] == b"\x78"]
        case "data_version":
            return [command.body for command in requests(RequestCode.QUERY_DATA_VERSION)]
        case "kv_table":
            return (b'{"table":{"TA":"broker-a:4;broker-b:4"}}', b'{"table":{0:null,}}')
        case "route":
            return [command.body for command in replies(RequestCode.GET_ROUTEINFO_BY_TOPIC)]
        case "proxy_header":
            return PROXY
        case "properties":
            return PROPERTIES
        case _:
            return (*TOLERANT, *bodies)
