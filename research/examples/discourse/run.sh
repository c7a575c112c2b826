#!/usr/bin/env bash
# Sentence encoders from the order of sentences: data, the rows of Table 5.5, and what their vectors are good for.
#
#   bash research/examples/discourse/run.sh [OUT]                                   a made-up text, a minute
#   bash research/examples/discourse/run.sh OUT TEXTS LANGUAGE SETS                 TEXTS/train.txt.gz, valid, test; the public sets
#
# BUDGET is the processor time of a training in seconds, ROWS are the rows (default: all). What is done is skipped.
set -euo pipefail
. "$(dirname "$0")/../../../examples/stages.sh"
out=${1:-runs/discourse}
texts=${2:-$out/text}
language=${3:-en}
sets=${4:-$out/text}
here=research/examples/discourse
some=() small=()
mkdir -p "$out"
same_settings "$out" "TEXTS=$texts LANGUAGE=$language"

say "1/4 a text with paragraphs, and examples of ORDER, NEXT and CONJUNCTION"
if [ $# -lt 2 ]; then
    export BUDGET=${BUDGET:-4} ROWS=${ROWS:-bigru-all cbow-all}
    [ -e "$out/text/custrev.all" ] || python "$here/made_up_text.py" "$out/text"
    some=(--only CR)
    small=(--size 32 --lr 0.1)
fi
of() { ls "$texts/$1.txt" "$texts/$1.txt.gz" 2>/dev/null | head -n 1; }
[ -e "$out/data" ] || llrnn discourse --train "$(of train)" --valid "$(of valid)" --test "$(of test)" \
    --language "$language" --lower --words 30000 --next-every 1 --out "$out/data"

say "2/4 the rows of Table 5.5"
read -r -a rows <<<"${ROWS:-}"
python "$here/discourse_rows.py" train "${rows[@]}" --data "$out/data" --out "$out/rows" \
    --budget "${BUDGET:-3600}" "${small[@]}"

say "3/4 logistic regression on their vectors, as in Table 5.6"
python "$here/discourse_rows.py" transfer "${rows[@]}" --data "$out/data" --out "$out/rows" --sets "$sets" \
    "${some[@]}" "${small[@]}"

say "4/4 tables"
{
    python "$here/discourse_rows.py" table --out "$out/rows"
    printf '\n'
    python "$here/shared_words.py" --data "$out/data"
} | tee "$out/tables.md"
