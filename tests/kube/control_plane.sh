#!/usr/bin/env bash
# A real Kubernetes control plane on loopback, without containers: etcd, API server, controller manager, scheduler, and
# kwok, which simulates nodes. Pods are admitted, scheduled, get an address and become ready; nothing runs in them.
#
#   tests/kube/control_plane.sh BIN FOLDER NODES
#
# BIN: what binaries.sh makes. Prints the path of a KUBECONFIG when all is ready, stays until a signal, then ends what
# it started and removes its state from FOLDER, where the logs stay.
set -euo pipefail

bin=$(realpath "$1") nodes=$3
mkdir -p "$2/log"
folder=$(realpath "$2")
state=$(mktemp -d "$folder/state.XXXXXX")
export PATH=$bin:$PATH
READY_WITHIN_S=120 ENDS_WITHIN_S=15
pids=() names=()

start() { # start NAME COMMAND...
  "${@:2}" >"$folder/log/$1.log" 2>&1 &
  pids+=($!) names+=("$1")
}

stop() { # the last started first, each gone before the next: the API server must not lose etcd while it drains
  trap - EXIT
  local i end
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    kill "${pids[i]}" 2>/dev/null || continue
    end=$((SECONDS + ENDS_WITHIN_S))
    while kill -0 "${pids[i]}" 2>/dev/null && ((SECONDS < end)); do sleep 0.1; done
    ! kill -9 "${pids[i]}" 2>/dev/null || echo "${names[i]} did not end in time and was killed" >&2
  done
  rm -rf "$state"
}

all_run() {
  local i
  for i in "${!pids[@]}"; do
    kill -0 "${pids[i]}" 2>/dev/null || {
      echo "${names[i]} has ended: $(tail -n 1 "$folder/log/${names[i]}.log")" >&2
      return 1
    }
  done
}

await() { # await WHAT COMMAND...: until it succeeds
  local end=$((SECONDS + READY_WITHIN_S))
  until "${@:2}" >/dev/null 2>&1; do
    all_run
    ((SECONDS < end)) || { echo "$1 is not ready in time; see $folder/log" >&2; exit 1; }
    sleep 0.2
  done
}

free_ports() {
  python3 - <<'P'
import socket

listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(6)]
print(*[listener.getsockname()[1] for listener in listeners])
P
}

node() {
  cat <<Y
---
apiVersion: v1
kind: Node
metadata:
  name: node-$1
  labels:
    kubernetes.io/hostname: node-$1
    kubernetes.io/os: linux
    topology.kubernetes.io/zone: zone-$(($1 % 3))
status:
  allocatable: &room {cpu: "32", memory: 256Gi, pods: "110", ephemeral-storage: 100Gi}
  capacity: *room
Y
}

trap stop EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
chmod 700 "$state"
read -r client peer api manager scheduler kwok < <(free_ports)
etcd=http://127.0.0.1:$client

start etcd etcd --data-dir "$state/etcd" --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
  --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
  --initial-cluster "default=http://127.0.0.1:$peer"

openssl genrsa -out "$state/accounts.key" 2048 2>/dev/null
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$state/kubelet.key" -out "$state/kubelet.crt" -subj /CN=kubelet \
  -days 2 2>/dev/null # of the nodes, whose exec, port-forward and logs the API server asks for
token=$(openssl rand -hex 16)
echo "$token,admin,admin,system:masters" >"$state/tokens.csv"
start apiserver kube-apiserver --etcd-servers "$etcd" --bind-address 127.0.0.1 --advertise-address 127.0.0.1 \
  --secure-port "$api" --cert-dir "$state/tls" --token-auth-file "$state/tokens.csv" --authorization-mode Node,RBAC \
  --service-cluster-ip-range 10.96.0.0/16 --service-account-issuer https://kubernetes.default.svc \
  --service-account-key-file "$state/accounts.key" --service-account-signing-key-file "$state/accounts.key" \
  --enable-admission-plugins NodeRestriction --endpoint-reconciler-type none --allow-privileged \
  --kubelet-preferred-address-types InternalIP
await "the API server's certificate" test -s "$state/tls/apiserver.crt"

export KUBECONFIG=$state/kubeconfig
cat >"$KUBECONFIG" <<Y
apiVersion: v1
kind: Config
current-context: here
clusters:
  - {name: here, cluster: {server: "https://127.0.0.1:$api", certificate-authority: "$state/tls/apiserver.crt"}}
users: [{name: here, user: {token: "$token"}}]
contexts: [{name: here, context: {cluster: here, user: here}}]
Y
await "the API server" kubectl get --raw /readyz

start controller-manager kube-controller-manager --kubeconfig "$KUBECONFIG" --bind-address 127.0.0.1 \
  --secure-port "$manager" --cert-dir "$state/manager" --leader-elect=false \
  --service-account-private-key-file "$state/accounts.key" --root-ca-file "$state/tls/apiserver.crt"
start scheduler kube-scheduler --kubeconfig "$KUBECONFIG" --bind-address 127.0.0.1 --secure-port "$scheduler" \
  --cert-dir "$state/scheduler" --leader-elect=false
kubectl apply --server-side -f "$bin/kwok-resources.yaml" >/dev/null
kubectl wait --for=condition=Established crd --all --timeout=60s >/dev/null
start kwok kwok --kubeconfig "$KUBECONFIG" --manage-all-nodes=true --server-address "127.0.0.1:$kwok" \
  --cidr 10.244.0.0/16 --node-ip 127.0.0.1 --node-port "$kwok" --node-lease-duration-seconds 40 \
  --tls-cert-file "$state/kubelet.crt" --tls-private-key-file "$state/kubelet.key" --config "$bin/kwok-stages.yaml" \
  --enable-crds Exec,Logs,PortForward
for ((i = 0; i < nodes; i++)); do node "$i"; done | kubectl apply -f - >/dev/null
await "every node" kubectl wait --for=condition=Ready node --all --timeout=1s
await "the default account" kubectl -n default get serviceaccount default

echo "$KUBECONFIG"
while all_run; do
  sleep 1 &
  wait $!
done
exit 1
