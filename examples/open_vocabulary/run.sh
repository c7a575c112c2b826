#!/usr/bin/env bash
# Bits per character on French Universal Dependencies, Test1 and Test2: four systems, one after the other. What is done is
# skipped. Features and counts come from the training text alone.
#
#   bash examples/open_vocabulary/run.sh [UD_FOLDER] [OUT]
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
ud=${1:-../shared/data/ud-french-gsd-1.4}
out=${2:-runs/open-vocabulary}

[ -e "$out/french/train.conllu" ] || python examples/french_morphology/prepare.py --ud "$ud" --out "$out/french"
python examples/open_vocabulary/open_vocabulary.py --text "$out/french/text" --conllu "$out/french/train.conllu" --out "$out" \
    open unk pieces characters
