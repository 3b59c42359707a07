"""A plain model of access: what docs/access.md promises, written from that page and not from the code.

It imports nothing of ours. A world is plain data (`tests.guarded.world`), and the model says of each request whether it
is admitted, as which actor, and in which words it is refused. It knows no caches, connections or generations, and looks
at everything again for each request.
"""

from collections.abc import Mapping
from typing import Final

from tests.guarded.bad_proofs import BadProofs
from tests.guarded.names import is_in, is_loopback, names_on_wire
from tests.guarded.proofs import BAD, Bad, Proof, by_certificate, by_signature, by_token
from tests.guarded.rules import Caller, admits, factors
from tests.guarded.world import Connection, HttpRequest, Outcome, WireRequest, World

READING: Final = frozenset({"read", "audit", "metrics"})
OF_TLS: Final = frozenset({"broker", "admin", "config"})
CODES: Final[Mapping[int, frozenset[str]]] = {
    **dict.fromkeys((105, 106, 206, 224, 304, 311, 312, 313, 101, 219), frozenset({"read"})),
    **dict.fromkeys((103, 104, 322, 901, 904), frozenset({"broker"})),
    **dict.fromkeys((100, 102, 205, 216, 327), frozenset({"admin"})),
    **dict.fromkeys((318, 319), frozenset({"config"})),
    217: frozenset({"broker", "admin"}),
}
ORDER: Final = ("read", "broker", "admin", "config")
"""Of classes, of which a remark names the first: a topic is registered by its broker, or by an operator."""
OWN_NAMES: Final = ("127.0.0.1", "localhost")
WHOAMI: Final = "/v1/whoami"


class WireModel:
    """Judges what comes to a worker."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._bad = BadProofs()

    def accepts(self, peer: Connection) -> bool:
        """Return whether a connection is not closed for the bad proofs that came from its host."""
        is_proxy = is_in(peer.host, self._world.proxies)
        client = peer.header if is_proxy and peer.header not in ("", "local") else None
        hosts = ([] if is_proxy else [peer.host]) + ([] if client is None else [client])
        return not any(self._bad.is_shut(host, self._world.now) for host in hosts)

    def is_last(self, peer: Connection, request: WireRequest) -> bool:
        """Return whether a connection is closed behind the reply: to one more bad proof of a host that is shut out."""
        host, needs = self._address(peer)[0], CODES.get(request.code)
        if needs is None or self._world.observes or is_in(host, self._world.proxies):
            return False
        is_bad = self._looks_at_signatures(needs) and by_signature(self._world, request) is BAD
        return is_bad and self._bad.is_shut(host, self._world.now)

    def judge(self, peer: Connection, request: WireRequest) -> Outcome:
        """Judge a request over a connection."""
        answered = "silent" if request.oneway else "answered"
        needs = CODES.get(request.code)
        if needs is None:
            return Outcome(answered)
        world, (host, port) = self._world, self._address(peer)
        shown = by_certificate(world, peer.certificate) if peer.tls else None
        signed = by_signature(world, request) if self._looks_at_signatures(needs) else None
        if signed is BAD and not world.observes:
            self._bad.add(host, world.now)
        proof = next((one for one in (signed, shown) if isinstance(one, Proof)), None)
        actor = f"wire:{f'[{host}]' if ':' in host else host}:{port}" if proof is None else proof.actor
        if self._admits(peer, request, needs, signed, shown):
            return Outcome(answered, actor)
        refusal = (
            "changed" if request.code == 322 else f"refused {next(one for one in ORDER if one in needs)}"
        )
        return Outcome(answered if world.observes or request.oneway else refusal, actor, denied=True)

    def _admits(
        self,
        peer: Connection,
        request: WireRequest,
        needs: frozenset[str],
        signed: Proof | Bad | None,
        shown: Proof | Bad | None,
    ) -> bool:
        names, client = names_on_wire(request), self._client_with_rights(peer)
        caller = Caller("remoting", client, client is not None and is_loopback(client), peer.tls)
        for factor, proof in (("signed", signed), ("mtls", shown)):
            caller.proved[factor] = proof.classes(names) if isinstance(proof, Proof) else set()
        if signed is BAD or (shown is BAD and needs & self._barred and not needs & caller.proved["signed"]):
            return False
        return any(admits(self._world, one, caller) for one in needs)

    @property
    def _barred(self) -> frozenset[str]:
        """Of a bad certificate."""
        return OF_TLS | ({"read"} if "mtls" in factors(self._world.rules["read"]) else set())

    def _looks_at_signatures(self, needs: frozenset[str]) -> bool:
        """Those of reads only where their rule names signatures: clients sign for their brokers, with keys of these."""
        return needs != {"read"} or "signed" in factors(self._world.rules["read"])

    def _address(self, peer: Connection) -> tuple[str, int]:
        """Return the host and port that remarks and events name."""
        if peer.header in ("", "local") or not is_in(peer.host, self._world.proxies):
            return peer.host, peer.port
        return peer.header, peer.header_port

    def _client_with_rights(self, peer: Connection) -> str | None:
        """Return the host that has the rights of an address; None where none has."""
        client = self._address(peer)[0]
        if is_in(peer.host, self._world.proxies) and (
            peer.header == "local" or (not peer.header and self._world.proxy_required)
        ):
            return None
        return None if peer.header and is_loopback(client) else client


class HttpModel:
    """Judges what comes to an HTTP process."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._bad = BadProofs()

    def judge(self, request: HttpRequest) -> Outcome:
        """Judge a request."""
        headers, world = request.headers, self._world
        if headers.get("Host", OWN_NAMES[0]) not in OWN_NAMES:
            return Outcome("400 host-not-allowed")
        if request.method != "GET" and "Origin" in headers:
            return Outcome("403 cross-site")
        if not request.needs and request.path != WHOAMI:
            return Outcome("answered")
        client = self._client(request)[0]
        if self._bad.is_shut(client, world.now):
            return Outcome("429 too-many-requests")
        proof = self._proof(request)
        if proof is BAD and _token_in(request) and not world.observes:
            self._bad.add(client, world.now)
        actor = proof.actor if isinstance(proof, Proof) else f"http:{client}"
        if not request.needs:
            return Outcome("401 unauthenticated invalid_token" if proof is BAD else "answered", actor)
        classes = proof.classes(request.names) if isinstance(proof, Proof) else set[str]()
        harmless = proof is not BAD or request.needs in READING
        if harmless and admits(world, request.needs, self._caller(request, classes)):
            return Outcome("answered", actor)
        refusal = "403 forbidden"
        if not isinstance(proof, Proof):
            refusal = f"401 unauthenticated{' invalid_token' if proof is BAD else ''}"
        lasts = request.method != "GET" and request.path.startswith("/v1/access/")
        return Outcome("answered" if world.observes and not lasts else refusal, actor, denied=True)

    def classes(self, request: HttpRequest) -> set[str]:
        """Return the classes that whoami shows, within the limits of a principal."""
        proof = self._proof(request)
        caller = self._caller(request, proof.of_roles if isinstance(proof, Proof) else set())
        return {of_class for of_class in self._world.rules if admits(self._world, of_class, caller)}

    def _proof(self, request: HttpRequest) -> Proof | Bad | None:
        text = _token_in(request)
        return None if text is None else by_token(self._world, text)

    def _caller(self, request: HttpRequest, classes: set[str]) -> Caller:
        client, forwarded = self._client(request)
        if forwarded and is_loopback(client):
            return Caller("http", None, loopback=False, proved={"token": classes})
        return Caller("http", client, is_loopback(client), proved={"token": classes})

    def _client(self, request: HttpRequest) -> tuple[str, bool]:
        """Return the client, and whether its request came through a proxy."""
        hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",") if hop.strip()]
        forwarded = bool(hops) or any(name in request.headers for name in ("Forwarded", "Via"))
        client = request.host
        while hops and is_in(client, self._world.http_proxies):
            client = hops.pop()
        return client, forwarded


def _token_in(request: HttpRequest) -> str | None:
    """Return the token that a request shows; "" of another scheme, which is no guess at one."""
    text = request.headers.get("Authorization")
    if text is None:
        return None
    scheme, _, token = text.partition(" ")
    return token if scheme == "Bearer" else ""
