#!/usr/bin/env bash
# Questions to logical forms under a grammar: in training and in search, only in search, and without.
#
#   bash examples/semantic_parsing/run.sh [WORK-DIRECTORY [DATA-FOLDER]]        (default: runs/semantic_parsing)
#
# DATA-FOLDER has GeoQuery's funql_train.tsv and funql_test.tsv, or ATIS' {train,dev,test}.tsv.gz; without it, a small set
# is made. SEEDS="1 2 3" trains as many models of each kind, and parses with all of a kind together as well. They see the
# training pairs four times (COPIES) and 6,000 pairs that are put together from their parts (RECOMBINED), for six epochs
# (EPOCHS). PAIRS=200 trains on so many pairs of GeoQuery, which the first seed chooses. HELD_OUT=120 tests on so many
# training questions instead of the test (ATIS: on the development set). Run it again and it goes on where it stopped;
# delete the work directory to start afresh, or for other settings than SEEDS.
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
work=${1:-runs/semantic_parsing}
data=${2:-$work/made}
here=examples/semantic_parsing
seeds=${SEEDS:-1} epochs=${EPOCHS:-6} recombined=${RECOMBINED:-6000} copies=${COPIES:-4}
mkdir -p "$work"

train() { # train PRIOR SEED
    local folder=$work/$1-$2 updates=$((epochs * (($(wc -l <"$work/text/mixed.form") + 31) / 32)))
    if [ -e "$folder/done" ]; then
        echo "trained already, in $folder"
        return
    fi
    mkdir -p "$folder"
    run "$folder/train.log" fairseq-train "$work/data-bin" --save-dir "$folder" --user-dir fairseq_llrnn \
        --task llrnn_translation --source-lang question --target-lang form --prior "$work/data-bin/$1" \
        --arch llrnn_lstm --encoder-bidirectional --encoder-embed-dim 100 --encoder-hidden-size 100 \
        --decoder-embed-dim 100 --decoder-hidden-size 200 --decoder-layers 1 --dropout 0.4 --criterion log_linear \
        --optimizer adam --lr 0.005 --clip-norm 5 --lr-scheduler polynomial_decay --warmup-updates 30 \
        --total-num-update "$updates" --max-epoch "$epochs" --batch-size 32 --seed "$2" --cpu --disable-validation \
        --required-batch-size-multiple 1 --num-workers 0 --no-epoch-checkpoints --save-interval "$epochs" \
        --log-format simple --log-interval 1000
    touch "$folder/done"
}

parse() { # parse PRIOR "SEED…" NAME OPTION…: the test questions, by the models of that prior and these seeds together
    local prior=$1 seeds=$2 out=$work/$1-${2// /-}-$3 models=()
    for seed in $seeds; do models+=("$work/$prior-$seed/checkpoint_last.pt"); done
    outputs+=("$3=$out.forms")
    shift 3
    [ -e "$out.forms" ] || run "$out.log" python $here/funql_parse.py --path "${models[@]}" --data "$work/data-bin" \
        --prior "$work/data-bin/$prior" --questions "$work/text/test.question" --out "$out.forms" "$@"
}

score=(python $here/funql_score.py --gold "$work/text/test.tsv")
zero=
say "1/6 questions and forms, names in symbols"
if [ $# -lt 2 ] && [ ! -e "$data/funql_test.tsv" ]; then python $here/funql_made.py --out "$data"; fi
if [ ! -e "$data/funql_train.tsv" ] && [ ! -e "$data/train.tsv.gz" ]; then
    echo "run.sh: error: $data: expected funql_train.tsv (GeoQuery) or train.tsv.gz (ATIS), found neither; give its folder" >&2
    exit 2
fi
mkdir -p "$work/text"
same_settings "$work/text" "EPOCHS=$epochs COPIES=$copies RECOMBINED=$recombined PAIRS=${PAIRS:-} HELD_OUT=${HELD_OUT:-} DATA=$data"
if [ -e "$data/funql_train.tsv" ]; then
    [ -e "$work/text/dict.form.txt" ] || python $here/funql_prepare.py --train "$data/funql_train.tsv" \
        --test "$data/funql_test.tsv" --held-out "${HELD_OUT:-0}" --out "$work/text" \
        ${PAIRS:+--pairs "$PAIRS" --seed "${seeds%% *}"}
    grammar=$here/funql.grammar
else # ATIS
    if [ -n "${PAIRS:-}" ]; then
        echo "run.sh: error: PAIRS=$PAIRS: expected GeoQuery, found ATIS in $data, which is used as a whole; unset it" >&2
        exit 2
    fi
    [ -e "$work/text/dict.form.txt" ] || python $here/atis_prepare.py --data "$data" --out "$work/text" \
        ${HELD_OUT:+--held-out}
    grammar=$work/text/forms.grammar
    score=(python $here/atis_score.py --text "$work/text")
    zero=", on_zero=skip" # the grammar does not accept all training forms
fi

say "2/6 new pairs from parts of the training pairs"
[ -e "$work/text/mixed.form" ] || python $here/recombine.py --text "$work/text/train" --grammar "$grammar" \
    --number "$recombined" --copies "$copies" --out "$work/text/mixed"

say "3/6 fairseq-preprocess; the target's dictionary is the grammar's"
preprocess "$work/data-bin" -s question -t form --trainpref "$work/text/mixed" --testpref "$work/text/test" \
    --tgtdict "$work/text/dict.form.txt"

say "4/6 two priors: every symbol its own feature; the grammar as background, and none"
symbols=(--dict "$work/data-bin/dict.form.txt" --top-words all)
[ -e "$work/data-bin/plain" ] || run "$work/plain.log" llrnn prior "${symbols[@]}" --background uniform \
    --out "$work/data-bin/plain"
[ -e "$work/data-bin/grammar" ] || run "$work/grammar.log" llrnn prior "${symbols[@]}" \
    --background "automaton($grammar$zero)" --out "$work/data-bin/grammar"

parse_all() { # parse_all "SEED…" SUFFIX: with the models of these seeds together, and without the grammar in training
    parse grammar "$1" "both$2" --mask "$work/data-bin/grammar"
    parse plain "$1" "search$2" --mask "$work/data-bin/grammar"
    parse plain "$1" "without$2"
}

say "5/6 training and parsing"
outputs=()
for seed in $seeds; do
    echo "seed $seed"
    train grammar "$seed"
    train plain "$seed"
    parse_all "$seed" ""
done
if [ "$seeds" != "${seeds% *}" ]; then parse_all "$seeds" "-together"; fi

say "6/6 the grammar in training and search, only in search, and without: percent of the questions"
"${score[@]}" --json "$work/scores.json" "${outputs[@]}"
