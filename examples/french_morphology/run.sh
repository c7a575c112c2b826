#!/usr/bin/env bash
# The whole experiment: texts, agreement pairs, all models (two at a time), tables and picture. What is done is skipped.
#
#   bash examples/french_morphology/run.sh [UD_FOLDER] [OUT] [RESULTS]
#
# RESULTS is OUT/results unless given. docs/results has its french.json and french-sweep.png.
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
ud=${1:-../shared/data/ud-french-gsd-1.4}
out=${2:-runs/french}
results=${3:-$out/results}
here=examples/french_morphology

[ -e "$out/data-bin/valid.idx" ] || python "$here/prepare.py" --ud "$ud" --out "$out"
[ -e "$out/pairs.jsonl" ] || python "$here/pairs.py" --ud "$ud" --prepared "$out" --out "$out/pairs.jsonl"

setsid python "$here/run.py" train --ud "$ud" --out "$out" & # with its own group, which the trap ends
first=$!
trap 'kill -- -"$first" 2>/dev/null || true' EXIT
sleep 5 # so that the second one finds the first model taken
python "$here/run.py" train --ud "$ud" --out "$out"
wait "$first"
trap - EXIT

python "$here/report.py" --out "$out" --docs "$results"
