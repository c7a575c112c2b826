#!/usr/bin/env bash
# Language models of a small treebank: texts, all models one after the other, the table. What is done is skipped.
#
#   bash examples/small_treebanks/run.sh [UD_FOLDER] [OUT] [SEEDS]
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
ud=${1:-../shared/data/ud-hungarian-szeged}
out=${2:-runs/small-treebanks}
seeds=${3:-1 2 3}
here=examples/small_treebanks

[ -e "$out/data-bin/test.idx" ] || python "$here/small_texts.py" --ud "$ud" --out "$out" # fairseq writes it last
# shellcheck disable=SC2086 # several seeds are several words
python "$here/small_treebanks.py" train --ud "$ud" --out "$out" --seeds $seeds
python "$here/small_treebanks.py" table --out "$out"
