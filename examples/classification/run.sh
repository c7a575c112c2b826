#!/usr/bin/env bash
# Labels of texts: our trees and flat head against fastText, on one data set. Some minutes (glosses: an hour). What is done
# is skipped.
#
#   bash examples/classification/run.sh [SET] [DATA] [OUT]
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
set=${1:-clinc150}
data=${2:-../shared/data}
out=${3:-runs/classification}
mkdir -p "$out"

one() { # one MODEL OPTIONS…: a line of JSON more, where there is none of it
    say "$set: $*"
    python examples/classification/classification.py run --data "$data" --set "$set" --out "$out/$set.jsonl" --model "$@"
}

[ "$set" = glosses ] && epochs=5 batch=512 || epochs=10 batch=64
for model in "huffman --arity 2" "huffman --arity 20" "learned --arity 20"; do
    # shellcheck disable=SC2086
    one $model --epochs "$epochs" --batch "$batch"
done
[ "$set" = glosses ] || one flat --epochs "$epochs" --batch "$batch" # of 140,000 labels, a flat epoch takes minutes
if python -c "import fasttext" 2>/dev/null; then
    for rate in 0.2 0.5 1.0; do one fasttext-hs --rate "$rate" --epochs 30; done
else
    echo 'run.sh: fastText is not installed: pip install ".[classification]"' >&2
fi
python examples/classification/classification.py table "$out/$set.jsonl"
