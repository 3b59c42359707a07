#!/usr/bin/env bash
# The programs of a Kubernetes control plane, built from their Go modules into FOLDER, unless they are there: 12 to 18
# minutes on two cores.
#
#   tests/kube/binaries.sh FOLDER      KUBE_BUILD_JOBS: packages compiled at once (2)
#
# Needs go 1.21 or newer, which fetches the release that each module asks for.
set -euo pipefail

KUBE_VERSION=1.36.3 KWOK_VERSION=0.8.0 ETCD_VERSION=3.6.5
mkdir -p "$1"
bin=$(realpath "$1")

module() { # module MODULE@VERSION MEMBER: what `go mod download` says of it
  go mod download -json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

versions() { # linker flags that tell a program its version
  local in=k8s.io/component-base/version
  echo "-X $in.gitVersion=v$1 -X $in.gitMajor=${1%%.*} -X $in.gitMinor=$(cut -d. -f2 <<<"$1")" \
    "-X sigs.k8s.io/kwok/pkg/consts.Version=v$1"
}

build() { # build MODULE VERSION PROGRAM=PACKAGE...: required by a module of ours, for replacements are not inherited
  local module=$1 version=$2 folder programs=() pair part file
  shift 2
  for pair in "$@"; do [[ -x $bin/${pair%%=*} ]] || programs+=("$pair"); done
  [[ ${#programs[@]} -gt 0 ]] || return 0
  echo "building ${programs[*]%%=*} from $module $version"
  folder=$(mktemp -d "$bin/../module.XXXXXX")
  (
    cd "$folder"
    export GOFLAGS=-mod=mod
    go mod init build
    file=$(module "$module@v$version" GoMod)
    go mod edit -go="$(awk '$1 == "go" { print $2 }' "$file")" -require="$module@v$version"
    # the parts of Kubernetes: v1.X.Y of the whole is v0.X.Y of each
    for part in $(sed -nE 's,^(replace )?[[:space:]]*(\S+) => \./staging/.*,\2,p' "$file"); do
      go mod edit -replace="$part=$part@v0.${version#*.}"
    done
    for pair in "${programs[@]}"; do
      nice go build -p "${KUBE_BUILD_JOBS:-2}" -trimpath -ldflags "-s -w $(versions "$version")" \
        -o "$bin/${pair%%=*}" "${pair#*=}"
    done
  ) >>"$bin/../build.log" 2>&1 || { tail -n 5 "$bin/../build.log" >&2; exit 1; }
  rm -rf "$folder"
}

stages() { # how simulated nodes and pods behave: kwok's own, and a load balancer that grants an address
  local folder file
  folder=$(module "sigs.k8s.io/kwok@v$KWOK_VERSION" Dir)/kustomize/stage
  for file in "$folder"/node/fast/node-initialize.yaml "$folder"/node/heartbeat-with-lease/*lease.yaml \
    "$folder"/pod/fast/pod-*.yaml "$(dirname "${BASH_SOURCE[0]}")/load_balancer.yaml"; do
    echo ---
    cat "$file"
  done
}

resources() { # by which a test leads exec, port-forward and logs of a pod to a process of its own
  local folder kind
  folder=$(module "sigs.k8s.io/kwok@v$KWOK_VERSION" Dir)/kustomize/crd/bases
  for kind in execs logs portforwards; do
    echo ---
    cat "$folder/kwok.x-k8s.io_$kind.yaml"
  done
}

written() { # written FILE COMMAND: unless it is there, and then whole
  [[ -s $bin/$1 ]] || { "$2" >"$bin/$1.part" && mv "$bin/$1.part" "$bin/$1"; }
}

kubernetes=k8s.io/kubernetes/cmd
build k8s.io/kubernetes "$KUBE_VERSION" kube-apiserver=$kubernetes/kube-apiserver \
  kube-controller-manager=$kubernetes/kube-controller-manager kube-scheduler=$kubernetes/kube-scheduler \
  kubectl=$kubernetes/kubectl
build sigs.k8s.io/kwok "$KWOK_VERSION" kwok=sigs.k8s.io/kwok/cmd/kwok
build go.etcd.io/etcd/server/v3 "$ETCD_VERSION" etcd=go.etcd.io/etcd/server/v3
written kwok-stages.yaml stages
written kwok-resources.yaml resources
