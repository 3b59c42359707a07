#!/usr/bin/env bash
# Builds the wheels of the four distributions: tools/wheels.sh PYTHON FOLDER
#
# PYTHON has the packages of requirements/build.txt.
set -euo pipefail
python=$(realpath -s "$1") folder=$(realpath -m "$2")
cd "$(dirname "$0")/.."

for distribution in . distributions/{mqns,mqpipeline,pyspark_redis_stream}; do
  (cd "$distribution" && "$python" -m hatchling build -t wheel -d "$folder")
done
