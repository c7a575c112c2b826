#!/usr/bin/env bash
# A small GPT-2 of `transformers` with a log-linear head, under a grammar, on the embedded corpus.
#
#   bash examples/huggingface/run.sh [WORK-DIRECTORY]    (default: runs/huggingface; CORPUS=DIR EPOCHS=8 WIDTH=64)
#
# Needs the extra: pip install '.[hf]'. Run it again and it goes on where it stopped; delete the work
# directory to start afresh.
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
export HF_HUB_OFFLINE=1 # nothing is downloaded
work=${1:-runs/huggingface}
corpus=${CORPUS:-$work/corpus}
mkdir -p "$work"

say "a small corpus in a French-like language"
if [ -z "${CORPUS:-}" ] && [ ! -e "$corpus/probes.jsonl" ]; then
    python scripts/make_corpus.py --out "$corpus"
fi

say "GPT-2 under a grammar: training, saved and loaded, sentences"
python examples/huggingface/train_gpt2.py "$corpus" "$work" --epochs "${EPOCHS:-8}" --width "${WIDTH:-64}"
