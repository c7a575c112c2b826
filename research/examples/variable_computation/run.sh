#!/usr/bin/env bash
# Recurrent cells on characters of English novels, by their operations: texts, all systems one after the other, the
# table, and where the variable GRU computes. What is done is skipped.
#
#   bash research/examples/variable_computation/run.sh [NOVELS] [OUT] [SEEDS]
set -euo pipefail
. "$(dirname "$0")/../../../examples/stages.sh"
novels=${1:-../shared/data/eltec-eng}
out=${2:-runs/variable-computation}
seeds=${3:-1 2 3}
here=research/examples/variable_computation

[ -e "$out/data-bin/prior" ] || python "$here/variable_computation.py" prepare --novels "$novels" --out "$out"
# shellcheck disable=SC2086 # several seeds are several words
python "$here/variable_computation.py" train --out "$out" --seeds $seeds
python "$here/variable_computation.py" table --out "$out"
say "what share of its dimensions it computes to read each character"
model=$out/models/vcgru-1/checkpoint_best.pt
head -n 3 "$out/text/valid.txt" | llrnn explain --path "$model" --computation "$out/computation.png" --top 1 - \
    >"$out/explained.txt"
echo "$out/computation.png, $out/explained.txt"
