#!/usr/bin/env bash
# Builds every probe program and runs it on this machine's H100 or H200.
# usage: packs/hopper/probes/run.sh OUT.jsonl     exit status 1 when a probe fails
# One line of JSON per probe in OUT.jsonl; lines of a program that did not build or did not end are
# {"probe": PROGRAM, "ok": false, "detail": ...}. NVCC and JOBS may be set in the environment.
set -u
[ $# -eq 1 ] || { echo "usage: $0 OUT.jsonl" >&2; exit 2; }
out=$1
here=$(cd "$(dirname "$0")" && pwd)
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
programs=(sync mbarrier tma wgmma_shared wgmma_layouts wgmma_registers epilogue fastmath
  schedules_gemm schedules_forward schedules_backward limits measured)
printf '%s\n' "${programs[@]}" | xargs -P "${JOBS:-$(nproc)}" -I{} sh -c \
  '"$1" -O3 -std=c++17 -lineinfo -gencode=arch=compute_90a,code=sm_90a -o "$3/{}" "$2/{}.cu" \
   >"$3/{}.log" 2>&1' build "$nvcc" "$here" "$build"
: >"$out"
status=0
failed() {
  printf '{"probe": "%s", "wrappers": [], "ok": false, "detail": "%s"}\n' "$1" "$2" >>"$out"
  status=1
}
for program in "${programs[@]}"; do
  if [ ! -x "$build/$program" ]; then
    failed "$program" "nvcc failed"
    cat "$build/$program.log" >&2
    continue
  fi
  timeout 60 "$build/$program" >>"$out"
  code=$?
  [ $code -eq 0 ] || failed "$program" "exit status $code"
done
grep -c '"ok": true' "$out" | sed 's/$/ probes passed/' >&2
grep '"ok": false' "$out" >&2
exit $status
