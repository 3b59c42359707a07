"""The tables after a request, from this server's replies and the earlier requests."""

from collections.abc import Sequence

from msgspec.structs import replace

from rocketmq_remoting.codes import RequestCode
from tests.differential.answers import Seen
from tests.differential.exchange import CUT
from tests.differential.world import Ask, Group, Live, Member, State


def shown_by(asks: Sequence[Ask], look: Sequence[Seen], before: State) -> State:
    """Return the tables as 106, the first of these requests, and 105 show them; the rest as it was before."""
    info = look[0].body
    groups = {
        name: Group(
            one["cluster"],
            {int(number): addr for number, addr in one["brokerAddrs"].items()},
            one["enableActingMaster"],
            one.get("zoneName"),
        )
        for name, one in info["brokerAddrTable"].items()
    }
    queues = {
        ask.ext["topic"]: {row["brokerName"]: row for row in seen.body["queueDatas"]}
        for ask, seen in zip(asks, look, strict=True)
        if ask.ext and seen.code == 0
    }
    clusters = {name: tuple(names) for name, names in info["clusterAddrTable"].items()}
    departed = before.departed | (before.groups.keys() - groups.keys())
    return replace(before, groups=groups, clusters=clusters, queues=queues, departed=departed)


def remembered(shown: State, ask: Ask, answer: Seen) -> State:
    """Return the state with what only requests show: registrations and their connections."""
    if ask.code == RequestCode.DELETE_TOPIC_IN_NAMESRV:
        return replace(shown, deleted=shown.deleted | {ask.get("topic") or ""})
    live, replaced = dict(shown.live), dict(shown.replaced)
    foreign = shown.foreign
    if ask.code == CUT:
        live = {
            member: replace(one, over=tuple(n for n in one.over if n != ask.over))
            for member, one in live.items()
        }
        replaced = {member: over for member, over in replaced.items() if over != ask.over}
    elif ask.code == RequestCode.UNREGISTER_BROKER:
        replaced.pop((ask.get("clusterName") or "", ask.get("brokerAddr") or ""), None)
    elif ask.says is not None and _holds_its_place(shown, ask) and answer.code in (0, None):
        says = ask.says
        member = (says.cluster, says.addr)
        over = tuple(n for n in live[member].over if n != ask.over) if member in live else ()
        live[member] = Live(says, (*over, ask.over))
        replaced.pop(member, None)
        foreign |= {(topic, bname) for topic, bname in says.infos if bname != says.name}
    for member in [member for member in live if not _listed(shown, member)]:
        removed = live.pop(member)
        if ask.says is not None:
            replaced[member] = removed.over[-1] if removed.over else 0
    return replace(shown, live=live, replaced=replaced, foreign=foreign)


def _holds_its_place(shown: State, ask: Ask) -> bool:
    assert ask.says is not None
    group = shown.group(ask.says.name)
    return group is not None and group.addrs.get(ask.says.id) == ask.says.addr


def _listed(shown: State, member: Member) -> bool:
    return bool(shown.names_of(member[1]))


def alone(state: State, member: Member, number: int) -> bool:
    """Return whether a member of its name's cluster, under one name, has that connection alone and no other."""
    names = state.names_of(member[1])
    others = [over for key, one in state.live.items() if key != member for over in one.over]
    return (
        state.live[member].over == (number,)
        and number not in (*others, *state.replaced.values())
        and len(names) == 1
        and all(state.groups[name].cluster == member[0] for name in names)
        and all(len(state.clusters_of(name)) == 1 for name in names)
    )
