"""Types that are used for the first time by several threads at once, which msgspec alone does not survive."""

import subprocess
import sys
import threading
from typing import Any, Literal

import msgspec
import pytest

from rocketmq_remoting.typed import converted, decoded

ROUNDS = 1500
"""With msgspec alone each of five processes ended in less than 0.3 s."""


def first_uses(how: str) -> None:
    """Have three threads use a type at once that none has used, again and again; what `how` names does it."""
    ways: dict[str, Any] = {
        "decoded": lambda kind: decoded(b'{"kind":"a"}', kind),
        "converted": lambda kind: converted({"kind": "a"}, kind),
        "msgspec": lambda kind: msgspec.json.decode(b'{"kind":"a"}', type=kind),
    }
    sys.setswitchinterval(1e-6)
    for round_ in range(ROUNDS):
        kind = msgspec.defstruct("Kind", [("kind", Literal["a", str(round_)])])
        gate = threading.Barrier(3)

        def use(kind: Any = kind, gate: threading.Barrier = gate) -> None:
            gate.wait()
            assert ways[how](kind).kind == "a"

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print("through")


@pytest.mark.parametrize("how", ["decoded", "converted"])
def test_threads_use_a_type_for_the_first_time_at_once(how: str) -> None:
    program = f"from tests.rocketmq_remoting import test_typed; test_typed.first_uses({how!r})"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "through\n", "")


def test_wrong_input_names_the_field() -> None:
    kind = msgspec.defstruct("Kind", [("count", int)])
    with pytest.raises(msgspec.ValidationError, match=r"\$\.count"):
        decoded(b'{"count":"a"}', kind)
    with pytest.raises(msgspec.ValidationError, match=r"\$\.count"):
        converted({"count": "1"}, kind)
    assert converted({"count": "1"}, kind, strict=False) == kind(1)
