"""Pieces of streams as rows, to be shared out to tasks."""

from collections.abc import Sequence

import pyarrow as pa

from mqpipeline.source.ids import parsed
from mqpipeline.source.streams import Piece

NAMES = ("stream", "first", "last")


def rows_of(pieces: Sequence[Piece]) -> pa.Table:
    """A row a piece; `first` and `last` are ids, both to be read."""
    rows = [(piece.stream, str(piece.first), str(piece.last)) for piece in pieces]
    columns = [pa.array(texts, pa.utf8()) for texts in zip(*rows, strict=True)]
    return pa.Table.from_arrays(columns, names=NAMES)


def pieces_of(rows: pa.RecordBatch) -> list[Piece]:
    """What such rows say."""
    columns = (rows[name].to_pylist() for name in NAMES)
    return [Piece(stream, parsed(first), parsed(last)) for stream, first, last in zip(*columns, strict=True)]
