#!/usr/bin/env bash
# usage: bash run.sh OUT DATA        results in OUT; DATA has eltec-eng and ud-french-gsd-1.4
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1 data=$2
export OMP_NUM_THREADS=1 MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184
mkdir -p "$out"

part() { # FILE TOKENS: the first so many tokens, lower-cased, without empty lines
    zcat "$data/eltec-eng/$1.txt.gz" | awk -v most="$2" 'NF { n += NF; if (n <= most) print tolower($0) }' > "$out/$1.txt"
}
part train 1000000
part valid 100000
part test 100000

field() { # NAME OPTIONS…
    local name=$1
    shift
    llrnn mrf train --text "$out/train.txt" --valid "$out/valid.txt" --out "$out/$name" "$@" 2> "$out/$name.log"
    llrnn mrf score --model "$out/$name" < "$out/test.txt"
}
field uw30 --words 2000 --width 30 --iterations 150
field uw30-order-1 --words 2000 --width 30 --order 1 --iterations 100
field uw-1000 --words 1000 --width 30 --iterations 100
field explicit-1000 --words 1000 --form explicit --iterations 60
llrnn mrf neighbours --model "$out/uw30" --number 3 married house red has pounds john she day
head -600 "$out/test.txt" > "$out/test-600.txt"
python "$here/backgrounds.py" --field "$out/uw30" --text "$out/train.txt" --test "$out/test-600.txt"

french=$data/ud-french-gsd-1.4
python "$here/tagging.py" --train "$french/train.conllu.gz" --test "$french/dev.conllu.gz"
