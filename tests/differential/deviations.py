"""Every allowed difference between Java's name servers and this one, one rule for each.

docs/differences.md says the same in words, with the reason for each; a test compares the names. What no rule allows
is a defect.
"""

from msgspec import Struct

from rocketmq_remoting.codes import RequestCode
from tests.differential import adjustments as out
from tests.differential.adjustments import Adjust
from tests.differential.answers import CLOSED, EXCEPTION, USABLE
from tests.differential.conditions import (
    Condition,
    adds_topics,
    all_of,
    any_of,
    asks,
    by_id_and_address,
    has_other_names,
    holds,
    known_in_another_cluster,
    lacks_required,
    leaves_a_trace,
    leaves_other_clusters,
    live_in_another_cluster,
    lower_state,
    master_of_another_cluster,
    of_another_cluster,
    of_frame,
    other_connections,
    registers,
    replaced,
    several_members,
    single_newcomer,
    with_codes,
    without_number,
    without_topic_names,
    zlib_unannounced,
    zlib_without_static_part,
)
from tests.differential.exchange import CUT, Exchange
from tests.differential.sides import JAVA_4, JAVA_5

BOTH = (JAVA_4, JAVA_5)
REGISTER, UNREGISTER = RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER
ROUTE, CLUSTERS = RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_BROKER_CLUSTER_INFO
VERSION_QUERY = RequestCode.QUERY_DATA_VERSION


class Rule(Struct, frozen=True):
    """One allowed difference from these releases, on the requests to which it `applies`.

    `adjust` takes the difference out of both answers. A rule that `parts` is about what the request does: Java's
    tables now differ from this one's, so that server is not compared in this world any more; with 5.5.0 the world is at
    its end."""

    name: str
    releases: tuple[str, ...]
    applies: Condition
    adjust: Adjust = out.nothing
    parts: bool = False

    def allows(self, e: Exchange) -> bool:
        return e.release in self.releases and self.applies(e)


HEADERS = (
    Rule("reply encoding", (JAVA_5,), lambda e: e.ours.binary and not e.java.binary, out.encoding),
    Rule(
        "reply encoding of errors",
        (JAVA_4,),
        all_of(lambda e: e.ours.binary and not e.java.binary, with_codes((1, 1))),
        out.encoding,
    ),
    Rule(
        "empty text in binary headers",
        BOTH,
        lambda e: e.ask.binary and "" in (e.ask.ext or {}).values(),
        out.all_of_it,
        parts=True,
    ),
    Rule(
        "negative length of ext fields",
        BOTH,
        all_of(of_frame("binary, ext length -1"), lambda e: e.ours == CLOSED),
        out.all_of_it,
    ),
    Rule(
        "language by number",
        BOTH,
        all_of(of_frame("language 99"), lambda e: e.java == CLOSED),
        out.all_of_it,
    ),
    Rule(
        "exception text",
        BOTH,
        all_of(with_codes((1, 1)), lambda e: bool(EXCEPTION.match(e.java.remark or ""))),
        out.remark,
    ),
    Rule(
        "left-over remark",
        (JAVA_5,),
        all_of(
            asks(RequestCode.GET_BROKER_MEMBER_GROUP),
            lambda e: (e.java.remark, e.ours.remark) == ("not set any response code", None),
        ),
        out.remark,
    ),
)
BODIES = (
    Rule(
        "zone filter keeps the dialect",
        (JAVA_5,),
        all_of(asks(ROUTE), lambda e: (e.ask.get("__ZONE_MODE") or "").lower() == "true"),
        out.dialect,
    ),
    Rule("empty zone", (JAVA_5,), asks(ROUTE, CLUSTERS), out.empty_zones),
    Rule("empty haServerAddr", BOTH, asks(REGISTER), out.empty_fields),
    Rule("any broker", BOTH, asks(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS), out.some_broker),
    Rule(
        "first queue data",
        BOTH,
        all_of(
            asks(
                RequestCode.GET_UNIT_TOPIC_LIST,
                RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
                RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
            ),
            with_codes((0, 0)),
        ),
        out.topics_of_several_flags,
    ),
    Rule(
        "static topics leave with their broker",
        (JAVA_5,),
        all_of(asks(ROUTE), with_codes((0, 0))),
        out.infos_that_stay,
    ),
    Rule(
        "data version without a broker",
        (JAVA_5,),
        all_of(
            asks(VERSION_QUERY),
            lacks_required,
            with_codes((1, 0)),
            lambda e: (e.ours.ext, e.ours.body) == ({"changed": "true"}, None),
        ),
        out.all_of_it,
    ),
)
REGISTRATIONS = (
    Rule(
        "required fields",
        (JAVA_5,),
        all_of(asks(REGISTER), lacks_required, with_codes((0, 1), (1, 1))),
        out.all_of_it,
        parts=True,
    ),
    Rule(
        "null members",
        BOTH,
        all_of(registers(lambda e, says: says.null_member), with_codes((0, 0))),
        out.all_of_it,
        parts=True,
    ),
    Rule(
        "topics without a name",
        BOTH,
        all_of(asks(REGISTER), without_topic_names, with_codes((0, 0))),
        out.all_of_it,
        parts=True,
    ),
    Rule(
        "filter servers that are no texts",
        BOTH,
        all_of(asks(REGISTER), holds('"filterServerList":[1]'), with_codes((0, 1), (1, 1))),
        out.all_of_it,
        parts=True,
    ),
    Rule(
        "an empty text for filter servers",
        (JAVA_4,),
        all_of(asks(REGISTER), holds('"filterServerList":""'), with_codes((0, 0))),
        parts=True,
    ),
    Rule(
        "text that is no UTF-8",
        BOTH,
        all_of(asks(REGISTER), holds("\udcff"), with_codes((0, 1))),
        out.all_of_it,
        parts=True,
    ),
    Rule(
        "byte order mark",
        (JAVA_5,),
        all_of(asks(REGISTER), holds("\ufeff"), with_codes((1, 0))),
        out.all_of_it,
        parts=True,
    ),
    Rule(
        "zlib that is not announced",
        BOTH,
        all_of(asks(REGISTER), zlib_unannounced, with_codes((1, 0))),
        out.all_of_it,
        parts=True,
    ),
    Rule(
        "zlib without static part",
        (JAVA_5,),
        all_of(asks(REGISTER), zlib_without_static_part, with_codes((1, 0))),
        out.all_of_it,
        parts=True,
    ),
    Rule(
        "a single topic leaves no trace",
        (JAVA_5,),
        registers(lambda e, says: single_newcomer(e, says) and leaves_a_trace(e, says)),
        parts=True,
    ),
    Rule(
        "a refused newcomer leaves no trace",
        (JAVA_5,),
        registers(lambda e, says: lower_state(e, says) and leaves_a_trace(e, says)),
        parts=True,
    ),
    Rule(
        "a replaced member is gone",
        BOTH,
        all_of(
            asks(VERSION_QUERY),
            replaced,
            with_codes((0, 0)),
            lambda e: (e.ours.ext, e.ours.body) == ({"changed": "true"}, None),
        ),
        out.all_of_it,
    ),
    Rule("a replaced member returns", BOTH, all_of(asks(REGISTER), replaced), parts=True),
)
GROUPS = (
    Rule("a master of another cluster", (JAVA_5,), registers(master_of_another_cluster), out.masters),
    Rule("filter servers of another cluster", (JAVA_5,), asks(ROUTE), out.filters_of_other_clusters),
    Rule("an address in two clusters", BOTH, registers(known_in_another_cluster), parts=True),
    Rule(
        "an address under two names",
        BOTH,
        all_of(asks(REGISTER, UNREGISTER, CUT), has_other_names),
        parts=True,
    ),
    Rule("all clusters of a name", BOTH, all_of(asks(UNREGISTER, CUT), leaves_other_clusters), parts=True),
    Rule("a lost member of another cluster", (JAVA_5,), all_of(asks(CUT), of_another_cluster), parts=True),
    Rule("all brokers of a connection", BOTH, all_of(asks(CUT), several_members), parts=True),
    Rule("all connections of a broker", BOTH, all_of(asks(CUT), other_connections), parts=True),
    Rule("unregistration without brokerId", (JAVA_5,), all_of(asks(UNREGISTER), without_number), parts=True),
)
OF_4X = (
    Rule(
        "address of the FAQ",
        (JAVA_4,),
        all_of(any_of(asks(ROUTE), lambda e: e.ask.code < 0), with_codes((17, 17))),
        out.address_of_faq,
    ),
    Rule("unknown codes", (JAVA_4,), lambda e: e.java == USABLE and e.ours.code == 3, out.all_of_it),
    Rule(
        "remark of the black list",
        (JAVA_4,),
        lambda e: (
            (e.java.remark, e.ours.remark)
            == ("Can not update config path", "Can not update config in black list.")
        ),
        out.remark,
    ),
    Rule("members of 5.x", (JAVA_4,), asks(ROUTE, CLUSTERS), out.members_of_5x),
    Rule("state version", (JAVA_4,), asks(VERSION_QUERY), out.state_version),
    Rule("options of 5.x", (JAVA_4,), asks(RequestCode.GET_NAMESRV_CONFIG), out.options_of_5x),
    Rule(
        "a single topic first",
        (JAVA_4,),
        all_of(registers(single_newcomer), with_codes((0, 1))),
        out.all_of_it,
        parts=True,
    ),
    Rule(
        "a null perm",
        (JAVA_4,),
        all_of(asks(REGISTER), lambda e: '"perm":null' in e.ask.body),
        parts=True,
    ),
    Rule("new topics under an old version", (JAVA_4,), registers(adds_topics), parts=True),
    Rule("members by address alone", (JAVA_4,), live_in_another_cluster, out.all_of_it, parts=True),
    Rule(
        "unregistration by id",
        (JAVA_4,),
        all_of(asks(UNREGISTER), lambda e: not by_id_and_address(e)),
        parts=True,
    ),
)
RULES = (*HEADERS, *BODIES, *REGISTRATIONS, *GROUPS, *OF_4X)
