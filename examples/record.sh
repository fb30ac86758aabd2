#!/usr/bin/env bash
# Walk the whole product on a machine with an H100 or H200 and keep what it recorded.
#
#   examples/record.sh FOLDER [TARGET] [SECONDS]
#
# Starts the demo with a worker of TARGET (default h200), submits the examples and one trick of each
# kind over REST, waits up to SECONDS (default 600) for the verdicts, and exports the submissions with
# the product's own command to FOLDER/recorded.tar; FOLDER/verdicts.txt has a line per submission,
# FOLDER/logs.tgz the logs. PYTHON names the interpreter (default python3). All tricks, without a
# site: `ptxboard corpus --target h200`.
set -euo pipefail
out=${1:?usage: examples/record.sh FOLDER [TARGET] [SECONDS]}
target=${2:-h200}
end=$(($(date +%s) + ${3:-600}))
python=${PYTHON:-python3}
cd "$(dirname "$0")/.."
mkdir -p "$out"
PTXBOARD_VAR=$(mktemp -d)
export PTXBOARD_VAR PTXBOARD_IN_FLIGHT_LIMIT=200 PORT=${PORT:-8321}

"$python" manage.py demo --empty --port "$PORT" --target "$target" >"$out/demo.txt" 2>&1 &
demo=$!
trap 'kill -TERM $demo 2>/dev/null || true; wait $demo || true; rm -rf "$PTXBOARD_VAR"' EXIT
until grep -q "PTXBoard is at" "$out/demo.txt"; do
    kill -0 $demo || { cat "$out/demo.txt"; exit 3; }
    sleep 0.3
done
"$python" manage.py shell --command "
from django.contrib.auth.models import User
User.objects.create_user('ptxboard', first_name='PTXBoard', last_name='examples')" >/dev/null
"$python" manage.py create_token --user ptxboard >"$PTXBOARD_VAR/examples_token"

submit() {
    "$python" examples/submit.py "$@" --target "$target" --wait $((end - $(date +%s))) \
        --site "http://127.0.0.1:$PORT" --token-file "$PTXBOARD_VAR/examples_token" \
        >>"$out/verdicts.txt" 2>&1 || true
}
kernels=examples/kernels
: >"$out/verdicts.txt"
submit $kernels/gemm_wgmma_tma.cu $kernels/gemm_plain.cu --problem gemm_n7168_k5120
submit $kernels/mha_forward_wgmma.cu --problem mha_with_lse_d128
submit $kernels/mha_forward_causal_wgmma.cu --problem mha_with_lse_d128_causal
submit $kernels/gemm_tvm_ffi.cu --problem gemm_n256_k256 --binding tvm-ffi
submit --candidates tests/candidates --only wrong_epilogue unlaunched_tma out_of_bounds \
    infinite_loop cublas_user timer_forger honest_plain
cat "$out/verdicts.txt"
"$python" manage.py export_evaluations "$PTXBOARD_VAR/recorded" --target "$target" >/dev/null
tar -C "$PTXBOARD_VAR" -cf "$out/recorded.tar" recorded
tar -C "$PTXBOARD_VAR/log" -czf "$out/logs.tgz" .
