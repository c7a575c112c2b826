#!/usr/bin/env bash
# Output trees on English novels: texts, every row under the log-bilinear model, times, tables and the picture. What is
# done is skipped.
#
#   bash research/examples/output_trees/run.sh [NOVELS] [OUT] [PART]
#
# PART of the batches of an epoch, from 0 to 1 (LSTMs: a third of it): the flat softmax takes an hour or two for all.
set -euo pipefail
. "$(dirname "$0")/../../../examples/stages.sh"
novels=${1:-../shared/data/eltec-eng}
out=${2:-runs/output-trees}
part=${3:-1}
here=research/examples/output_trees
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184 # for tensors as wide as the vocabulary

[ -e "$out/prior" ] || python "$here/output_trees.py" prepare --novels "$novels" --out "$out"
say "log-bilinear models"
python "$here/output_trees.py" train --out "$out" --part "$part" \
    adaptive learned learned-sorted learned-clusters random clustering huffman clusters flat-bf16
say "LSTMs"
python "$here/output_trees.py" train --out "$out" --network lstm --part "$(awk "BEGIN { print $part / 3 }")" \
    adaptive clusters learned random flat-bf16
say "what each output costs"
python "$here/output_trees.py" time --out "$out"
python "$here/output_trees.py" table --out "$out"
