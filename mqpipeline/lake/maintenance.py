"""What keeps a table quick and small: few files in place of many, and none that is long out of use."""

import logging
import os

from deltalake.exceptions import DeltaError

from mqpipeline.lake.files import FILE_BYTES
from mqpipeline.lake.log import Log
from mqpipeline.lake.place import sync
from mqpipeline.texts import one_line

logger = logging.getLogger(__name__)


def compact(log: Log) -> int:
    """Make the small files of a folder one; return how many fewer there are. Writers and readers go on meanwhile."""
    before = {file.path for file in log.files()}
    done = log.delta.optimize.compact(target_size=FILE_BYTES)
    log.look()
    after = {file.path for file in log.files()}
    if log.place.folder is not None:
        for path in after - before:
            with (log.place.folder / path).open("rb") as file:
                os.fsync(file.fileno())
            sync((log.place.folder / path).parent)
    return int(done["numFilesRemoved"]) - int(done["numFilesAdded"])


def care(log: Log, number: int, *, compact_every: int = 0, vacuum_every: int = 0) -> None:
    """Write a checkpoint of the log if it is time to; make files few, and delete those out of use, whenever the number
    of a batch or run is a multiple, 0: never. The work that this is part of goes on if it fails."""
    try:
        log.checkpoint()
        if compact_every and number % compact_every == 0:
            compact(log)
        if vacuum_every and number % vacuum_every == 0:
            vacuum(log)
    except (DeltaError, OSError) as error:
        text = one_line(error)
        logger.warning(
            "%s is not looked after: %s; tried again later, see `mqpipeline check`",
            log.place.name,
            text,
        )


def vacuum(log: Log) -> int:
    """Delete files that have been out of use for as long as the table keeps them (log.Retention), and those that a
    killed process left as long ago; return how many."""
    return len(log.delta.vacuum(dry_run=False, full=True))
