#!/usr/bin/env bash
# Makes .venv: the packages of requirements/dev.txt, and the four distributions of this tree as editable installs.
# Ends at once where that is done and none of its inputs is newer.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
ready=$venv/.ready # holds where it was made: an environment that was moved or copied does not work
inputs=(pyproject.toml distributions/*/pyproject.toml requirements/dev.txt hatch_build.py worker/transport/epoll.pyx)

usable() {
  [[ "$(cat "$ready" 2>/dev/null)" == "$PWD" ]] && "$venv/bin/python" -c '' 2>/dev/null
}

up_to_date() {
  local input
  for input in "${inputs[@]}"; do [[ ! $input -nt $ready ]] || return 1; done
}

if usable; then
  ! up_to_date || exit 0
else
  python=$(tools/python.sh)
  tools/provision.sh venv
  echo "setting up $venv, which takes about a minute"
  "$python" -m venv --clear "$venv"
fi
pip=("$venv/bin/python" -m pip install -q --disable-pip-version-check)
"${pip[@]}" --no-deps --require-hashes -r requirements/dev.txt # pip before 23.3 takes no pin for `pydantic[email]`
"${pip[@]}" --no-deps --no-build-isolation -e . -e distributions/mqns -e distributions/pyspark_redis_stream \
  -e distributions/mqpipeline
"$venv/bin/python" -c 'import worker.transport.epoll' 2>/dev/null ||
  echo "no C compiler or no Python headers: going on without the compiled transport"
echo "$PWD" >"$ready"
