#!/usr/bin/env bash
# A Markov random field of words beside n-grams, and one of words and tags beside hidden Markov taggers.
#
#   bash research/examples/markov_field/run.sh [OUT [DATA]]     DATA has eltec-eng and ud-french-gsd-1.4
#
# TOKENS of text, WORDS of the larger fields and of the smaller ones, ITERATIONS at most, CURVE the seconds of each curve, MANY
# words of the largest fields. What is done is skipped; a training that was stopped goes on. OUT is for one setting of these.
set -euo pipefail
. "$(dirname "$0")/../../../examples/stages.sh"
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184
out=${1:-runs/markov-field}
data=${2:-../shared/data}
here=research/examples/markov_field
tokens=${TOKENS:-1000000} many=${MANY:-10000} seconds=${CURVE:-40} iterations=${ITERATIONS:-}
read -r words fewer <<<"${WORDS:-2000 1000}"
mkdir -p "$out"
same_settings "$out" "TOKENS=$tokens WORDS='$words $fewer' ITERATIONS=$iterations CURVE=$seconds MANY=$many DATA=$data"

part() { # NAME TOKENS: the first so many tokens, lower-cased, without empty lines
    [ -s "$out/$1.txt" ] || { zcat "$data/eltec-eng/$1.txt.gz" |
        awk -v most="$2" 'NF { n += NF; if (n <= most) print tolower($0) }' >"$out/$1.part"; mv "$out/$1.part" "$out/$1.txt"; }
}

field() { # NAME ITERATIONS OPTIONS…: train it to its end or so many steps, score the test text
    local name=$1 most=${iterations:-$2}
    shift 2
    if [ ! -e "$out/$name" ] || [ -e "$out/$name/training.npz" ]; then
        run "$out/$name.log" llrnn mrf train --text "$out/train.txt" --valid "$out/valid.txt" --out "$out/$name" \
            --iterations "$most" "$@"
    fi
    table "$name.score" llrnn mrf score --model "$out/$name" <"$out/test.txt"
}

table() { # NAME COMMAND…: what it prints is kept in OUT/NAME
    local name=$1
    shift
    [ -s "$out/$name" ] || { "$@" >"$out/$name.part"; mv "$out/$name.part" "$out/$name"; }
    printf '\n%s\n' "$name"
    cat "$out/$name"
}

say "1/6 a text: novels"
part train "$tokens"
part valid "$((tokens / 10))"
part test "$((tokens / 10))"
head -n 600 "$out/test.txt" >"$out/test-600.txt"

say "2/6 fields of words: low rank, explicit potentials, and log-bilinear models"
field "uw-$words" 1000 --words "$words" --width 30
field "uw-$words-order-1" 1000 --words "$words" --width 30 --order 1
field "uw-$fewer" 1000 --words "$fewer" --width 30
field "explicit-$fewer" 1000 --words "$fewer" --form explicit
field "lbl-$fewer" 3 --words "$fewer" --width 30 --objective pseudo-likelihood
for size in "$words" "$fewer"; do
    table "left-to-right-$size.md" python "$here/log_bilinear.py" --field "$out/uw-$size" --texts "$out" \
        --out "$out/left-to-right-$size" --epochs "${iterations:-30}"
done
table neighbours llrnn mrf neighbours --model "$out/uw-$words" --number 3 house has she day john red pounds married

say "3/6 the field from left to right, beside n-grams"
table backgrounds.md python "$here/backgrounds.py" --field "$out/uw-$words" --text "$out/train.txt" \
    --test "$out/test-600.txt"

say "4/6 the bound against time"
table curve.md python "$here/time_to_optimum.py" --text "$out/train.txt" --valid "$out/valid.txt" --words "$fewer" \
    --seconds "$seconds" --out "$out/curve.tsv"

say "5/6 many words: time and memory, a field of them, and what signatures of a prior save"
table many.md python "$here/many_words.py" --text "$out/train.txt" --words "$many"
field "uw-$many-order-1" 1000 --words "$many" --width 30 --order 1
table signatures.md python "$here/signatures.py" --text "$out/train.txt" --words "$many" --top-words "$((many / 20))"

say "6/6 tags: fields beside hidden Markov taggers"
french=$data/ud-french-gsd-1.4
table tags.md python "$here/tagging.py" --train "$french/train.conllu.gz" --test "$french/dev.conllu.gz" \
    ${iterations:+--iterations "$iterations"}
