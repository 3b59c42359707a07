"""Client ids."""

import os
import re
import socket

from mqns.client_id import client_id, local_ip


def test_an_id_is_made_of_what_is_there() -> None:
    assert client_id("10.0.0.5", "billing") == "10.0.0.5@billing"
    assert client_id("10.0.0.5", "billing", "u1") == "10.0.0.5@billing@u1"
    assert client_id("10.0.0.5", "billing", " ") == "10.0.0.5@billing"
    assert client_id("10.0.0.5", "billing", "u1", stream=True) == "10.0.0.5@billing@u1@STREAM"


def test_an_instance_without_a_name_gets_one_of_its_own() -> None:
    ids = {client_id("10.0.0.5") for _ in range(3)}
    assert len(ids) == 3
    for one in ids:
        assert re.fullmatch(rf"10\.0\.0\.5@{os.getpid()}#\d+", one)


def test_the_address_of_this_machine_is_one() -> None:
    assert socket.inet_aton(local_ip())
