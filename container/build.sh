#!/usr/bin/env bash
# Builds the Dockerfile without a daemon, as root or not.
#
#   container/build.sh TARGET IMAGE      TARGET: namesrv or pipeline; IMAGE: its name; the version becomes its tag
#
#   BASE               debian: bases made here of Debian's packages; else the image to build upon, with
#   BUILD_BASE         the one to build in; empty: those of the Dockerfile
#   SOURCE_DATE_EPOCH  the time that all files get (the commit's)
set -euo pipefail
cd "$(dirname "$0")/.."

target=$1
secrets=build/image/secrets
revision=$(git rev-parse HEAD 2>/dev/null || true)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

if [[ ${BASE:-} == debian ]]; then
  BASE=localhost/redis-namesrv-base BUILD_BASE=localhost/redis-namesrv-build-base
  for base in "$BASE" "$BUILD_BASE"; do
    buildah inspect --type image "$base" >/dev/null 2>&1 || { container/base.sh; break; }
  done
fi
mkdir -p "$secrets"
trap 'rm -rf "$secrets"' EXIT
python3 container/pip_conf.py "$secrets"

# chroot: neither rights nor a kernel's namespaces are needed to run the steps
buildah bud -q --isolation chroot --format oci --timestamp "$epoch" --target "$target" --tag "$2:$version" \
  ${BASE:+--build-arg BASE="$BASE"} ${BUILD_BASE:+--build-arg BUILD_BASE="$BUILD_BASE"} \
  --build-arg VERSION="$version" --build-arg REVISION="$revision" \
  --secret id=pip.conf,src="$secrets/pip.conf" --secret id=ca.crt,src="$secrets/ca.crt" .
