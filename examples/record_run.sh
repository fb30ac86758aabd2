#!/usr/bin/env bash
# A model run through the whole product on a machine with an H100 or H200, against a scripted model.
#
#   examples/record_run.sh FOLDER [TARGET] [SECONDS] [SCRIPT.toml] [PROBLEM]
#
# Starts the demo with a worker of TARGET (default h200) and the scripted endpoint with the answers of
# SCRIPT (default examples/scripted/gemm.toml), hands the endpoint in over REST, waits up to SECONDS
# (default 900) for 3 variants x 4 trajectories x 8 turns, and exports the run with the product's own
# command to FOLDER/run/; FOLDER/run.txt has the grid and the metrics, FOLDER/run_logs.tgz the logs.
set -euo pipefail
out=${1:?usage: examples/record_run.sh FOLDER [TARGET] [SECONDS] [SCRIPT.toml] [PROBLEM]}
target=${2:-h200}
seconds=${3:-900}
script=${4:-examples/scripted/gemm.toml}
problem=${5:-gemm_n7168_k5120}
python=${PYTHON:-python3}
cd "$(dirname "$0")/.."
mkdir -p "$out"
PTXBOARD_VAR=$(mktemp -d)
model_port=${MODEL_PORT:-8932}
export PTXBOARD_VAR PTXBOARD_IN_FLIGHT_LIMIT=200 PORT=${PORT:-8331}
export PTXBOARD_ENDPOINT_HOSTS=127.0.0.1:$model_port

: >"$out/run_demo.txt"
"$python" examples/scripted/answers.py "$script" "$PTXBOARD_VAR/answers"
"$python" examples/scripted_endpoint.py "$PTXBOARD_VAR/answers" --port "$model_port" \
    >"$out/model.txt" 2>&1 &
model=$!
"$python" manage.py demo --empty --port "$PORT" --target "$target" >"$out/run_demo.txt" 2>&1 &
demo=$!
stop() {
    kill -TERM $demo $model 2>/dev/null || true
    wait $demo $model || true
    rm -rf "$PTXBOARD_VAR"
}
trap stop EXIT
until grep -q "PTXBoard is at" "$out/run_demo.txt"; do
    kill -0 $demo || { cat "$out/run_demo.txt"; exit 3; }
    sleep 0.3
done
"$python" examples/submit_model.py --base-url "http://127.0.0.1:$model_port/v1" \
    --model scripted-gemm --name "Scripted model" --problem "$problem" --target "$target" \
    --parameters '{"send_labels": true}' --max-parallel 12 --wait "$seconds" \
    --site "http://127.0.0.1:$PORT" --token-file "$PTXBOARD_VAR/demo_token" \
    --id-file "$out/run_id" 2>&1 | tee "$out/run.txt" || true
"$python" manage.py export_model_run "$(cat "$out/run_id")" "$out/run"
tar -C "$PTXBOARD_VAR/log" -czf "$out/run_logs.tgz" .
