#!/usr/bin/env bash
# Bases of Debian's packages alone, for places that reach no registry of images: localhost/redis-namesrv-base, and
# redis-namesrv-build-base with what the Dockerfile's builder needs. The same packages give the same layers.
#
#   container/base.sh [SUITE]      DEBIAN_MIRROR: where packages come from, unless from Debian
set -euo pipefail

suite=${1:-bookworm} mirror=${DEBIAN_MIRROR:-}
folder=build/image
mkdir -p "$folder"

base() { # base NAME PACKAGES: the tarball's times and compiled modules follow SOURCE_DATE_EPOCH
  local tar=$folder/$1.tar
  SOURCE_DATE_EPOCH=0 mmdebstrap --quiet --variant=minbase --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
    --include="ca-certificates,python3,usr-is-merged$2" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --customize-hook='rm -rf "$1"/etc/apt/sources.list* "$1"/var/cache/debconf/*-old "$1"/var/lib/dpkg/*-old' \
    "$suite" "$tar" ${mirror:+"$mirror"}
  local container
  container=$(buildah from scratch)
  buildah add -q "$container" "$tar" / >/dev/null
  buildah config --cmd python3 "$container"
  buildah commit -q --rm --timestamp 0 "$container" "localhost/$1"
  rm "$tar"
}

base redis-namesrv-base ''
base redis-namesrv-build-base ,gcc,libc6-dev,python3-dev,python3-venv
