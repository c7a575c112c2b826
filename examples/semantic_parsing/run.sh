#!/usr/bin/env bash
# Questions to logical forms under a grammar: in training and in search, only in search, and without.
#
#   bash examples/semantic_parsing/run.sh [WORK-DIRECTORY [DATA-FOLDER]]        (default: runs/semantic_parsing)
#
# DATA-FOLDER has GeoQuery's funql_train.tsv and funql_test.tsv; without it, a small set is made. SEEDS="1 2 3" trains as
# many models of each kind, EPOCHS=30 each of them so long, HELD_OUT=120 tests on so many training questions instead of
# the test. Run it again and it goes on where it stopped; delete the work directory to start afresh.
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
work=${1:-runs/semantic_parsing}
data=${2:-$work/made}
here=examples/semantic_parsing
epochs=${EPOCHS:-30}
mkdir -p "$work"

train() { # train PRIOR SEED
    local folder=$work/$1-$2 updates=$((epochs * (($(wc -l <"$work/text/train.form") + 19) / 20)))
    if [ -e "$folder/done" ]; then
        echo "trained already, in $folder"
        return
    fi
    mkdir -p "$folder"
    run "$folder/train.log" fairseq-train "$work/data-bin" --save-dir "$folder" --user-dir fairseq_llrnn \
        --task llrnn_translation --source-lang question --target-lang form --prior "$work/data-bin/$1" \
        --arch llrnn_lstm --encoder-bidirectional --encoder-embed-dim 100 --encoder-hidden-size 100 \
        --decoder-embed-dim 100 --decoder-hidden-size 200 --decoder-layers 1 --dropout 0.4 --criterion log_linear \
        --optimizer adam --lr 0.004 --clip-norm 5 --lr-scheduler polynomial_decay --warmup-updates 30 \
        --total-num-update "$updates" --max-epoch "$epochs" --batch-size 20 --seed "$2" --cpu --disable-validation \
        --required-batch-size-multiple 1 --num-workers 0 --no-epoch-checkpoints --save-interval "$epochs" \
        --log-format simple --log-interval 1000
    touch "$folder/done"
}

parse() { # parse PRIOR SEED NAME OPTION…: the test questions, by the model of that prior
    local folder=$work/$1-$2 prior=$1 out=$3
    shift 3
    [ -e "$folder/$out.forms" ] || run "$folder/$out.log" python $here/funql_parse.py --path "$folder/checkpoint_last.pt" \
        --data "$work/data-bin" --prior "$work/data-bin/$prior" --questions "$work/text/test.question" \
        --out "$folder/$out.forms" "$@"
}

say "1/5 questions and forms, names in symbols"
if [ $# -lt 2 ] && [ ! -e "$data/funql_test.tsv" ]; then python $here/funql_made.py --out "$data"; fi
[ -e "$work/text/dict.form.txt" ] || python $here/funql_prepare.py --train "$data/funql_train.tsv" \
    --test "$data/funql_test.tsv" --held-out "${HELD_OUT:-0}" --out "$work/text"

say "2/5 fairseq-preprocess; the target's dictionary is the grammar's"
[ -e "$work/data-bin/dict.form.txt" ] || run "$work/preprocess.log" fairseq-preprocess -s question -t form \
    --trainpref "$work/text/train" --testpref "$work/text/test" --tgtdict "$work/text/dict.form.txt" \
    --thresholdsrc 2 --destdir "$work/data-bin"

say "3/5 two priors: every symbol its own feature; the grammar as background, and none"
symbols=(--dict "$work/data-bin/dict.form.txt" --top-words all)
[ -e "$work/data-bin/plain" ] || run "$work/plain.log" llrnn prior "${symbols[@]}" --background uniform \
    --out "$work/data-bin/plain"
[ -e "$work/data-bin/grammar" ] || run "$work/grammar.log" llrnn prior "${symbols[@]}" \
    --background automaton:$here/funql.grammar --out "$work/data-bin/grammar"

say "4/5 training and parsing"
outputs=()
for seed in ${SEEDS:-1}; do
    echo "seed $seed"
    train grammar "$seed"
    train plain "$seed"
    parse grammar "$seed" both --mask "$work/data-bin/grammar"
    parse plain "$seed" search --mask "$work/data-bin/grammar"
    parse plain "$seed" without
    outputs+=("both=$work/grammar-$seed/both.forms" "search=$work/plain-$seed/search.forms"
        "without=$work/plain-$seed/without.forms")
done

say "5/5 the grammar in training and search, only in search, and without: percent of the questions"
python $here/funql_score.py --gold "$work/text/test.tsv" --json "$work/scores.json" "${outputs[@]}"
