#!/usr/bin/env bash
# Bits per character of twelve languages: texts, all rows one after the other, the tables. What is done is skipped.
#
#   bash examples/languages/run.sh [DATA] [OUT] [LANGUAGE …]
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
# A softmax takes and returns large blocks of memory a step; without these settings glibc gives them back each time.
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184
data=${1:-../shared/data}
out=${2:-runs/languages}
only=("${@:3}")
here=examples/languages

python "$here/language_texts.py" --data "$data" --out "$out" "${only[@]}"
python "$here/languages.py" train --data "$data" --out "$out" ${only[@]:+--languages "${only[@]}"}
python "$here/languages.py" collect --out "$out" --results "$out/languages.json"
python "$here/languages.py" table --results "$out/languages.json" --picture "$out/languages.png"
