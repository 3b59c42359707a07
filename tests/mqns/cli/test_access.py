"""`mqns whoami` and `mqns access …`, against a real name server."""

import json
from pathlib import Path
from typing import Any

import pytest

from mqns.cli.access import DAY_MS
from mqns.cli.exit_codes import ExitCode
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from tests.mqns.cli.conftest import http_side, run

WITHIN_S = 1.0


@pytest.fixture
def http(servers: list[NameServer]) -> str:
    return http_side(servers[0])


def ask(http: str, *arguments: str) -> Any:
    ended = run(*arguments, "--http", http, "-o", "json")
    assert ended.code == ExitCode.OK, ended.err
    return json.loads(ended.out)


def test_a_token_from_its_creation_to_its_end(http: str, tmp_path: Path) -> None:
    anonymous = ask(http, "whoami")
    assert (anonymous["principal"], anonymous["roles"]) == (None, [])
    created = run("access", "create", "console", "--role", "operator", "--days", "7", "--http", http)
    token = created.out.strip()
    token_id = token.split("_")[1]
    assert created.err.startswith(f"mqns: token {token_id} of console, until ")
    file = tmp_path / "token"
    file.write_text(token)
    known = json.loads(run("whoami", "--http", http, "-o", "json", "--token-file", str(file)).out)
    assert (known["actor"], known["roles"]) == ("token:console", ["operator"])
    newer = run("access", "rotate", token_id, "--keep-hours", "0", "--http", http).out.strip()
    old: dict[str, str | None] = {"MQNS_TOKEN": token}
    new: dict[str, str | None] = {"MQNS_TOKEN": newer}
    eventually(lambda: run("whoami", "--http", http, env=old).code == ExitCode.REFUSED, WITHIN_S + 1)
    assert run("whoami", "--http", http, env=new).code == ExitCode.OK
    listed = run("access", "list", "--http", http).out
    (row,) = [line for line in listed.splitlines() if f"token:{token_id}" in line]
    assert row.split()[-1] == "-"  # of the last use: what was noted is written in a while
    assert token not in listed
    credential = f"token:{newer.split('_')[1]}"
    assert run("access", "revoke", credential, "--http", http).out == "revoked\n"
    eventually(lambda: run("whoami", "--http", http, env=new).code == ExitCode.REFUSED, WITHIN_S + 1)
    again = run("access", "revoke", credential, "--http", http)
    assert (again.code, again.err) == (
        ExitCode.REFUSED,
        f"mqns: no credential or principal '{credential}'\n",
    )


def test_a_token_in_the_place_of_another_one_is_good_for_as_long(http: str) -> None:
    created = ask(http, "access", "create", "ci", "--role", "reader", "--days", "7")
    same = ask(http, "access", "rotate", created["tokenId"])
    assert same["expiresMillis"] - same["createdMillis"] == 7 * DAY_MS
    other = ask(http, "access", "rotate", same["tokenId"], "--days", "30")
    assert other["expiresMillis"] - other["createdMillis"] == 30 * DAY_MS


def test_a_wrong_name_is_refused_with_the_reason(http: str) -> None:
    no_roles = run("access", "create", "console", "--http", http)
    assert (no_roles.code, "no principal 'console' in the access file" in no_roles.err) == (
        ExitCode.REFUSED,
        True,
    )
    form = run("access", "create", "b b", "--role", "reader", "--http", http)
    assert (form.code, "principal: has 1 to 64 of A-Z a-z 0-9 . _ -" in form.err) == (ExitCode.REFUSED, True)
    role = run("access", "create", "console", "--role", "god", "--http", http)
    assert (role.code, "roles" in role.err) == (ExitCode.REFUSED, True)
    missing = run("access", "rotate", "00000000", "--http", http)
    assert (missing.code, "no token '00000000'" in missing.err) == (ExitCode.REFUSED, True)
