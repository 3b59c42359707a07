"""Entries of the stream of heartbeats as columns of HEARTBEATS."""

import pyarrow as pa

from mqpipeline.texts import not_utf8, without

BEAT_COLUMNS = (
    "stream string, id_ms bigint, id_n bigint, "
    "cluster string, broker string, id bigint, addr string, code int"
)


def heartbeats(raw: pa.RecordBatch) -> dict[str, pa.Array]:
    """Raw (BEAT_COLUMNS) -> the columns of HEARTBEATS by name, but `namespace`; no number, or not UTF-8, is null."""
    return {
        "id_ms": raw["id_ms"],
        "id_n": raw["id_n"].cast(pa.int32(), safe=False),
        "broker_id": raw["id"],
        "code": raw["code"],
        **{name: without(raw[name], not_utf8(raw[name])) for name in ("cluster", "broker", "addr")},
    }
