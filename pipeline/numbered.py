"""Names in Arrow columns as numbers, so that NumPy can sort and count what they name."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def numbered(rows: pa.Table, *names: str) -> tuple[npt.NDArray[np.int64], pa.Table]:
    """A number for each row, the same where two columns of text are; and the table of them by number."""
    first, second = (rows[name].dictionary_encode("encode").combine_chunks() for name in names)
    both = first.indices.to_numpy().astype(np.int64) * len(second.dictionary) + second.indices.to_numpy()
    numbers = pa.array(both).dictionary_encode()
    places = np.divmod(numbers.dictionary.to_numpy(), max(len(second.dictionary), 1))
    columns = [
        one.dictionary.take(pa.array(place)) for one, place in zip((first, second), places, strict=True)
    ]
    return numbers.indices.to_numpy().astype(np.int64), pa.table(columns, names)
