"""The other end of a connection, as the kernel looks it up and as its list of all connections has it."""

import os
import socket

import pytest

from testbed import sockets
from testbed.sockets import far_end


@pytest.mark.parametrize("looked_up", [True, False], ids=["sock_diag", "list"])
def test_the_other_end_is_the_file_that_was_accepted(
    looked_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced = "_open" if looked_up else "_inode"
    monkeypatch.setattr(sockets, replaced, lambda *_: ())
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as near:
        near.connect(listener.getsockname())
        accepted, _ = listener.accept()
        assert far_end(near) == os.readlink(f"/proc/self/fd/{accepted.fileno()}")
        accepted.close()
        assert far_end(near) == ""
