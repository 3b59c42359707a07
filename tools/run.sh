#!/usr/bin/env bash
# `make run`: the whole server in the foreground, for this machine alone, its data in DATA_DIR. tools/run.sh ARGUMENT...
set -euo pipefail
cd "$(dirname "$0")/.."
: "${DATA_DIR:=${MQNS_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/redis-namesrv}}"

mkdir -p "$DATA_DIR" || { echo "please set DATA_DIR to a folder for the data" >&2; exit 1; }
export MQNS_BIND_ADDRESS=${MQNS_BIND_ADDRESS:-127.0.0.1} MQNS_DATA_DIR=$DATA_DIR
export MQNS_ENABLE_SHUTDOWN_GRACEFULLY=${MQNS_ENABLE_SHUTDOWN_GRACEFULLY:-true}
export MQNS_ROCKETMQ_HOME=${MQNS_ROCKETMQ_HOME:-${ROCKETMQ_HOME:-$DATA_DIR}}
exec .venv/bin/mqnamesrv "$@"
