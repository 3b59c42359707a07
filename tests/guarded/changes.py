"""What changes in a world while requests are made: its access file, its tokens, what is revoked, its brokers."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from registry import access_tokens
from registry.access_tokens import Grant
from registry.keys import Keys
from registry.plans import Origin, Plan
from registry.registration.register import register
from registry.secret import Secret as Hidden
from tests.guarded.principals_file import PrincipalsFile
from tests.guarded.proofs import without_case
from tests.guarded.requests import BROKERS, TOPICS, address_of
from tests.guarded.world import Secret, World
from tests.guarded.worlds import Worlds
from tests.registry.brokers import registration

BY_HAND: Final = Origin("op", "test")


class Changes:
    """Changes a world, and file and store with it; `run` runs a plan on the store."""

    def __init__(
        self,
        dice: Random,
        world: World,
        worlds: Worlds,
        folder: Path,
        run: Callable[[Plan[Any]], Any],
        keys: Keys,
    ) -> None:
        self._dice = dice
        self._world = world
        self._worlds = worlds
        self._run = run
        self._keys = keys
        self.file = PrincipalsFile(folder)
        self.file.write(world.principals)

    def change_file(self) -> None:
        """Take other principals, drop one, or give one other roles and limits."""
        principals, drawn = self._world.principals, self._worlds.principals(self._world.now)
        name = self._dice.choice([*principals])
        if self._dice.random() < 0.5:
            principals.clear()
            principals.update(drawn)
        elif self._dice.random() < 0.5 and len(principals) > 1:
            del principals[name]
        else:
            other = self._dice.choice([*drawn.values()])
            if not (other.keys or principals[name].keys):
                principals[name] = principals[name]._replace(roles=other.roles)
            principals[name] = principals[name]._replace(limits=other.limits, limit_reads=other.limit_reads)
        self.file.write(principals)

    def store_token(self) -> None:
        """Store a token, as another HTTP process would."""
        token_id, stored = self._worlds.stored_token(self._world)
        principal, (text, valid_s), roles = stored
        digest = Hidden(hashlib.sha256(text.encode()).hexdigest())
        grant = Grant(token_id, digest, principal, roles, int((valid_s or 0) * 1000))
        token = self._run(access_tokens.create(self._keys, grant, BY_HAND))
        self._world.stored[token_id] = stored._replace(token=Secret(text, token.expires_ms / 1000))

    def some_credential(self) -> str:
        """Return the id of a credential or a principal, as the file has it."""
        return self._dice.choice([*self._credentials()])

    def revoke(self, credential: str, restores: bool) -> None:
        """Revoke or restore it, as another HTTP process would."""
        plan = access_tokens.restore if restores else access_tokens.revoke
        self._run(plan(self._keys, without_case(credential), "of-tests", BY_HAND))
        self.note_revoked(credential, restores)

    def note_revoked(self, credential: str, restores: bool) -> None:
        """Take note of what the store has now."""
        credential = without_case(credential)
        if restores:
            self._world.revoked.discard(credential)
        elif self._world.stored.pop(credential.removeprefix("token:"), None) is None:
            self._world.revoked.add(credential)

    def ends(self) -> Iterator[float]:
        """Yield when secrets and tokens end."""
        secrets = [stored.token for stored in self._world.stored.values()]
        for principal in self._world.principals.values():
            secrets += [*principal.tokens.values(), *(one for key in principal.keys.values() for one in key)]
        yield from (secret.ends for secret in secrets if secret.ends is not None)

    def register(self, version: int) -> None:
        """Have brokers and topics that requests are about: these may have been deleted, or gone with a connection."""
        for name in BROKERS:
            at = address_of(name)
            asked = registration(name, topics=TOPICS, cluster="c-1", at=at, version=version)
            self._run(register(self._keys, asked, BY_HAND))

    def _credentials(self) -> Iterator[str]:
        yield from self._world.revoked
        yield from (f"token:{token_id}" for token_id in self._world.stored)
        for name, principal in self._world.principals.items():
            yield f"principal:{name}"
            yield from (f"acl:{key}" for key in principal.keys)
            yield from principal.certificates
            yield from (f"token:{token_id}" for token_id in principal.tokens)
