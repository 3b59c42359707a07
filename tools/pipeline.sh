#!/usr/bin/env bash
# `make pipeline`: tables and reports of the events of MQNS_PIPELINE_URL or REDIS_URL, else of the store of `make run`
# in its folder of data, else of a made-up history in a store of its own. tools/pipeline.sh ARGUMENT...
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/data_folder.sh

export REDIS_URL=${MQNS_PIPELINE_URL:-${REDIS_URL:-}}
# the tables of one Redis are not those of another
warehouse=$folder/warehouse-$(sed -E 's,.*(://|@),,; s,[^A-Za-z0-9.]+,-,g' <<<"$REDIS_URL")
if [[ -z $REDIS_URL && -s $folder/store.url ]]; then
  REDIS_URL=$(<"$folder/store.url") warehouse=$folder/warehouse
fi
if [[ -n $REDIS_URL ]]; then
  export MQNS_PIPELINE_WAREHOUSE=${MQNS_PIPELINE_WAREHOUSE:-$warehouse}
  echo "tables are in $MQNS_PIPELINE_WAREHOUSE"
  exec .venv/bin/mqpipeline run "$@"
fi
export MQNS_PIPELINE_WAREHOUSE=$PWD/build/sample MQNS_PIPELINE_NAMESPACES=sample
echo "no name server runs here: a made-up history is reported on"
echo "tables are in $MQNS_PIPELINE_WAREHOUSE, of namespace $MQNS_PIPELINE_NAMESPACES"
rm -rf "$MQNS_PIPELINE_WAREHOUSE"
exec .venv/bin/python -m mqnamesrv.throwaway \
  sh -c '.venv/bin/mqpipeline sample >/dev/null && exec .venv/bin/mqpipeline run "$@"' mqpipeline "$@"
