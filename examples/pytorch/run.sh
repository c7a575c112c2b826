#!/usr/bin/env bash
# A log-linear language model in plain PyTorch, on the embedded corpus.
#
#   bash examples/pytorch/run.sh [WORK-DIRECTORY]        (default: runs/pytorch; CORPUS=DIR EPOCHS=4 WIDTH=128)
#
# Run it again and it goes on where it stopped; delete the work directory to start afresh.
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
work=${1:-runs/pytorch}
corpus=${CORPUS:-$work/corpus}
mkdir -p "$work"

say "a small corpus in a French-like language"
if [ -z "${CORPUS:-}" ] && [ ! -e "$corpus/probes.jsonl" ]; then
    python scripts/make_corpus.py --out "$corpus"
fi

say "a language model: prior, training, sentences, a word explained"
python examples/pytorch/language_model.py "$corpus" "$work" --epochs "${EPOCHS:-4}" --width "${WIDTH:-128}"
