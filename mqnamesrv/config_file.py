"""Java's configuration file: rewritten when request 318 changed something (RocketMQ Configuration.persist)."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from registry.options.load import read_properties
from rocketmq_remoting.properties import write_properties


def rewrite(path: Path, values: Mapping[str, str]) -> None:
    """Put `values` into the file, keeping its other entries; the old content goes to `<file>.bak`.

    OSError where it cannot be written, as on a mounted ConfigMap.
    """
    text = write_properties(read_properties(path) | dict(values))
    new = path.with_name(f"{path.name}.tmp")
    new.write_text(text)
    shutil.copymode(path, new)
    shutil.copy2(path, path.with_name(f"{path.name}.bak"))
    os.replace(new, path)
