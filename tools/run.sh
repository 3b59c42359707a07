#!/usr/bin/env bash
# `make run`: the whole server in the foreground, for this machine alone. tools/run.sh ARGUMENT...
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/data_folder.sh

mkdir -p "$folder" || { echo "please set MQNS_DATA_DIR to a folder for the data" >&2; exit 1; }
export MQNS_BIND_ADDRESS=${MQNS_BIND_ADDRESS:-127.0.0.1} MQNS_DATA_DIR=$folder
export MQNS_ENABLE_SHUTDOWN_GRACEFULLY=${MQNS_ENABLE_SHUTDOWN_GRACEFULLY:-true}
export MQNS_ROCKETMQ_HOME=${MQNS_ROCKETMQ_HOME:-${ROCKETMQ_HOME:-$folder}}
exec .venv/bin/mqnamesrv "$@"
