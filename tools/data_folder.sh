# Sourced by run.sh and pipeline.sh: sets `folder`, where `make run` keeps its data.
folder=${MQNS_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/redis-namesrv}
