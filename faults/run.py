"""The fault table: `make faults`, or some of its rows.

    python -m faults.run [ROW ...] [--brokers N] [--no-java] [--keep FOLDER]

Each row starts a service of its own, puts the load on it (faults/trial.py), breaks something, and judges what all
clients saw. A run of all rows writes docs/faults.md, row by row; with rows named it prints theirs. Exits 1 when a
promise was broken.
"""

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from faults.report import caller_heading, caller_line, failures, heading, line, look_lines, page
from faults.result import Result
from faults.row import Row
from faults.table import ROWS
from faults.trial import BROKERS, tried

PAGE = Path(__file__).resolve().parent.parent / "docs" / "faults.md"


def main() -> None:
    """Run rows, print them, and write the page when all were run."""
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(
        prog="faults.run", description="faults under load, and what came of them"
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of: {', '.join(names)}")
    parser.add_argument("--brokers", type=int, default=BROKERS, help="that register")
    parser.add_argument("--no-java", action="store_true", help="without a Java broker, producer and consumer")
    parser.add_argument("--keep", type=Path, help="folder for what all processes print")
    given = parser.parse_args()
    if unknown := set(given.rows) - set(names):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    complete = not given.rows and not given.no_java and given.brokers == BROKERS
    print("\n".join(heading()), flush=True)
    results: list[Result] = []
    for row in ROWS:
        if given.rows and row.name not in given.rows:
            continue
        with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
            folder = Path(tempfile.mkdtemp(prefix=f"{row.name}-", dir=given.keep or scratch))
            result = _result(row, folder, brokers=given.brokers, java=not given.no_java)
        print(line(result), flush=True)
        if result.seen:
            print("\n".join(look_lines(result.name, result.seen)), file=sys.stderr, flush=True)
        if result.callers:
            print("\n".join((*caller_heading(), caller_line(result))), file=sys.stderr, flush=True)
        for failure in failures(result):
            print(failure, file=sys.stderr, flush=True)
        results.append(result)
        if complete:
            PAGE.write_text(page(results, of=len(ROWS)))
    sys.exit(any(result.broken for result in results))


def _result(row: Row[Any], folder: Path, *, brokers: int, java: bool) -> Result:
    """Return the row's result; an exception becomes a failed result, so that other rows' results are kept."""
    began = time.monotonic()
    try:
        return tried(row, folder, brokers=brokers, java=java)
    except Exception as error:
        traceback.print_exc()
        why = f"not run to its end: {' '.join(str(error).split())[:300]}"
        return Result.failed(row.name, row.title, time.monotonic() - began, why)


if __name__ == "__main__":
    main()
