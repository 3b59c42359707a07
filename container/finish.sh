#!/bin/sh
# In the Dockerfile's builders: an installed environment made small and the same each time. finish.sh FOLDER
set -eu
find "$1" -type f \( -name '*.cpython-*.so' -o -name '*.abi3.so' \) -exec strip --strip-unneeded {} +
# modules are known by hash, not by time: a build sets all times, and with a read-only root nothing could be compiled again
# what looks out of date; unchecked, for neither file changes without the other
find "$1" -name __pycache__ -prune -exec rm -r {} +
PYTHONHASHSEED=0 "$1/bin/python" -m compileall -q --invalidation-mode unchecked-hash "$1/lib"
