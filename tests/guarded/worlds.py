"""Random worlds and callers, as plain data (`tests.guarded.model`).

Few names and few addresses, so that they meet: a rule the address that it names, a limit the name that it has not."""

from base64 import urlsafe_b64encode
from random import Random
from typing import Final

from tests.guarded.world import Certificate, Connection, Principal, Secret, StoredToken, World

CLASSES: Final = ("read", "broker", "admin", "config", "audit", "metrics")
ROLES: Final = ("reader", "broker", "operator", "admin", "scraper")
LOOPBACK, PRIVATE, PUBLIC, BALANCER, PROXY = "127.0.0.1", "10.1.2.3", "8.8.8.8", "10.9.0.1", "10.8.0.1"
HOSTS: Final = (LOOPBACK, LOOPBACK, "::1", PRIVATE, "10.2.0.7", "fd00:0:0:1::5", PUBLIC, "2001:db8:0:7::1")
BALANCERS: Final = ("10.9.0.0/16",)
PROXIES: Final = ("10.8.0.0/16",)
NETWORKS: Final = ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "fd00::/8")
FACTORS: Final = (
    *("open", "open", "off", "loopback", "net", "tls", "mtls", "mtls", "signed", "signed", "token", "token"),
    *(
        "remoting",
        "cidr:10.1.0.0/16",
        "net+signed",
        "tls+signed",
        "signed+mtls",
        "loopback+signed",
        "tls+net",
    ),
    *("cidr:8.8.8.8/32+tls", "net+token", "loopback+token", "remoting+signed", "mtls+cidr:10.0.0.0/8"),
)
PATTERNS: Final = {
    "clusters": ("c-1", "c-*", "*"),
    "brokers": ("b-*", "b-1", "*", "*-1"),
    "topics": ("o-*", "o-1", "*", "*-1", "x-1"),
    "kv": ("n-*", "m-1", "*"),
}
CERTIFICATES: Final = (
    *(
        "uri:spiffe://x.org/a/broker",
        "uri:spiffe://x.org/*/broker",
        "uri:spiffe://x.org/*/b",
        "uri:spiffe://x.org/a*",
    ),
    *("dns:a.x.org", "dns:*.x.org", "dns:B.x.org", "cn:a", "cn:b", "cn:*"),
)
USUAL: Final = (
    "open",
    "net",
    "net signed",
    "loopback net",
    "signed mtls",
    "tls signed",
    "net signed mtls token",
)
"""Rules that admit many."""
OVER_S: Final = -5
"""Seconds from now of what is over."""


class Worlds:
    """Draws worlds and who calls there; each text is drawn once."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self._serial = 0

    def world(self, now: float) -> World:
        world = World(
            rules={of_class: self._rule(of_class) for of_class in CLASSES},
            observes=self._dice.random() < 0.12,
            networks=NETWORKS,
            proxies=BALANCERS,
            proxy_required=self._dice.random() < 0.4,
            http_proxies=PROXIES,
            now=now,
        )
        world.principals.update(self.principals(now))
        return world

    def principals(self, now: float) -> dict[str, Principal]:
        """Return those of an access file; no two have the same credential."""
        names = self._dice.sample(("red", "blue", "green", "grey"), self._dice.choice((1, 2, 3, 4)))
        keys = [f"K{number}" for number in range(1, 6)]
        patterns = self._dice.sample(CERTIFICATES, 8)
        return {name: self._principal(keys, patterns, now) for name in names}

    def stored_token(self, world: World) -> tuple[str, StoredToken]:
        """Return a token of the store by its id, of a principal of the file or of another, for some seconds."""
        principal = self._dice.choice((*world.principals, "other"))
        own = principal == "other" or self._dice.random() < 0.3
        roles = tuple(sorted(self._dice.sample(ROLES, self._dice.choice((1, 2))))) if own else None
        token_id, text = self._token()
        return token_id, StoredToken(principal, Secret(text, self._dice.choice((3.0, 30.0, 3600.0))), roles)

    def certificate(self, now: float) -> Certificate:
        uris = ("spiffe://x.org/a/broker", "spiffe://x.org/b/b", "spiffe://x.org/a", "spiffe://y.org/a")
        dns = ("a.x.org", "A.X.org", "b.x.org", "a.b.x.org", "y.org")
        kind = self._dice.choice(("uri", "uri", "dns", "cn", "both", "none"))
        return Certificate(
            tuple(self._dice.sample(uris, self._dice.choice((1, 2)))) if kind in ("uri", "both") else (),
            tuple(self._dice.sample(dns, self._dice.choice((1, 2)))) if kind in ("dns", "both") else (),
            self._dice.choice(("a", "b", "a.b", None)) if kind != "none" else None,
            int(now + self._dice.choice((OVER_S, 1, 2, 5, 30, 3600, 3600, 3600))),
        )

    def connection(self, number: int, now: float) -> Connection:
        """Return a peer: of this machine, near or far, behind a balancer or not, over TLS or not."""
        header, host = "", self._dice.choice(HOSTS)
        if self._dice.random() < 0.3:
            host = BALANCER
            header = self._dice.choice(("", "local", *HOSTS))
        elif self._dice.random() < 0.15:
            header = self._dice.choice(("local", LOOPBACK, PRIVATE, "::1"))
        tls = self._dice.random() < 0.45
        shown = self.certificate(now) if tls and self._dice.random() < 0.8 else None
        return Connection(host, 20000 + number, header, self._dice.choice((1, 2)), tls, shown)

    def _rule(self, of_class: str) -> str:
        if of_class in ("read", "broker") and self._dice.random() < 0.6:
            return self._dice.choice(USUAL)
        alternatives = self._dice.sample(FACTORS, self._dice.choice((1, 1, 2, 2, 3)))
        return " ".join(one for one in dict.fromkeys(alternatives) if one != "off") or "off"

    def _principal(self, keys: list[str], patterns: list[str], now: float) -> Principal:
        """With a key it does not do what clients and what operators do: a file that has such a one is refused."""
        has_key = self._dice.random() < 0.75
        roles = self._dice.sample(ROLES, self._dice.choice((1, 1, 2)))
        if has_key and {"operator", "admin"} & {*roles} and {"reader", "broker"} & {*roles}:
            roles = roles[:1]
        limits = self._limits() if self._dice.random() < 0.45 else {}
        own_keys = (
            [keys.pop() for _ in range(min(self._dice.choice((1, 1, 2)), len(keys)))] if has_key else []
        )
        own_patterns = [patterns.pop() for _ in range(min(self._dice.choice((0, 1, 2, 3)), len(patterns)))]
        tokens = dict(self._token() for _ in range(self._dice.choice((0, 1, 2))))
        return Principal(
            tuple(roles),
            limits,
            bool(limits) and self._dice.random() < 0.5,
            {key: self._secrets(now) for key in own_keys},
            tuple(own_patterns),
            {token_id: Secret(text, self._end(now)) for token_id, text in tokens.items()},
        )

    def _limits(self) -> dict[str, tuple[str, ...]]:
        kinds = self._dice.sample([*PATTERNS], self._dice.choice((1, 1, 2, 3)))
        return {
            kind: tuple(self._dice.sample(PATTERNS[kind], self._dice.choice((0, 1, 1, 2))))
            for kind in sorted(kinds)
        }

    def _secrets(self, now: float) -> tuple[Secret, ...]:
        return tuple(
            Secret(f"secret {self._word(24)}", self._end(now)) for _ in range(self._dice.choice((1, 2)))
        )

    def _end(self, now: float) -> float | None:
        ends_in = self._dice.choice((None, None, None, None, OVER_S, 2, 4, 20))
        return None if ends_in is None else float(int(now + ends_in))

    def _token(self) -> tuple[str, str]:
        token_id, secret = self._word(8), urlsafe_b64encode(self._dice.randbytes(32)).decode().rstrip("=")
        return token_id, f"mqns_{token_id}_{secret}"

    def _word(self, length: int) -> str:
        self._serial += 1
        return f"{self._dice.getrandbits(4 * length):0{length}x}{self._serial:04d}"[-length:]
