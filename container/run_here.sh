#!/usr/bin/env bash
# Runs COMMAND where crun can start containers: it refuses a machine that has control groups of both versions at once
# ("hybrid"). There COMMAND gets a mount namespace of its own, in which only those of version 1 are seen.
#
#   container/run_here.sh COMMAND...
set -euo pipefail

both=/sys/fs/cgroup/unified
if [[ $(id -u) == 0 ]] && mountpoint -q "$both"; then
  exec unshare --mount --propagation private sh -c 'umount "$0" && exec "$@"' "$both" "$@"
fi
exec "$@"
