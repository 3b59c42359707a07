"""Frames of real peers: what we read, and that we write the same bytes again."""

import pytest

from rocketmq_remoting.command import SerializeType, encode
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.language import LanguageCode
from tests.rocketmq_remoting.golden import ALL, recorded


@pytest.mark.parametrize("name", ALL)
def test_a_recorded_frame_is_read_as_recorded(name: str) -> None:
    for _, header, kind, command, *_ in recorded(name):
        assert command.code == header["code"]
        assert command.opaque == header["opaque"]
        assert command.flag == header["flag"]
        assert command.version == header["version"]
        assert LanguageCode(command.language).name == header["language"]
        assert command.remark == header.get("remark")
        assert (command.ext or {}) == (header.get("extFields") or {})
        assert command.serialize_type == SerializeType[kind]


@pytest.mark.parametrize("name", ALL)
def test_a_recorded_frame_is_written_byte_for_byte(name: str) -> None:
    for frame, _, _, command, *_ in recorded(name):
        assert encode(command) == frame


@pytest.mark.parametrize("size", [1, 7, 1000, 65536, 10_000_000], ids=lambda size: f"{size} bytes a read")
def test_a_recorded_stream_is_cut_into_its_frames(size: int) -> None:
    frames = recorded("ns-5.5.0_both-binary") + recorded("ns-5.5.0_pushes")
    stream = b"".join(frame for frame, *_ in frames)
    reader = FrameReader()
    commands = []
    for start in range(0, len(stream), size):
        reader.feed(stream[start : start + size])
        while (command := reader.next_command()) is not None:
            commands.append(command)
    assert commands == [command for _, _, _, command, *_ in frames]
    assert reader.pending == 0
