#!/usr/bin/env bash
# Prints the Python to set up with: $PYTHON, else the first here that is 3.11 or newer.
set -euo pipefail

for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "$python"
    exit
  fi
done
echo "Python 3.11 or newer is needed; set PYTHON if it is not on PATH" >&2
exit 1
