#!/usr/bin/env bash
# Tests and fuzzing on the compiled transport, built with AddressSanitizer and UBSan: tools/sanitize.sh [INPUTS]
# What they find ends the process that it is in. It stands in build/sanitize/report, and the command fails: a worker that
# ended is started again, which a test need not notice.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$PWD/.venv/bin/python
inputs=${1:-10000000}
report=$PWD/build/sanitize/report
failed=0

rm -rf build/sanitize
"$python" hatch_build.py --sanitize
mkdir -p "$report"

export PYTHONMALLOC=malloc # of pymalloc's blocks AddressSanitizer sees no end
export PYTHONPATH=$PWD/tests/sanitized
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:quarantine_size_mb=16:log_path=$report/asan
export UBSAN_OPTIONS=print_stacktrace=1:log_path=$report/ubsan

preloaded() { # the runtimes, and what to run with them
  local runtimes=$1
  shift
  env LD_PRELOAD="$runtimes" "$@" || failed=1
}

gcc_runtimes="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
fuzzer_runtime=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/asan_with_fuzzer.so

# uvloop's transports are not compiled here, times are not those of a server, and malloc is not glibc's.
preloaded "$gcc_runtimes" "$python" -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder --timeout 600 \
  -k "not (uvloop or holding_the_loop or pages_of_what_was_freed)" tests/worker/transport tests/worker/cache tests/hostile tests/fuzz
preloaded "$fuzzer_runtime" "$python" -m tests.fuzz.run "$inputs"

for found in "$report"/*; do
  [[ -e $found ]] || continue
  failed=1
  echo "== $found"
  head -n 60 "$found"
done
exit "$failed"
