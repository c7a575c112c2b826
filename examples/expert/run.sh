#!/usr/bin/env bash
# Questions with numeric answers: the same network with and without an expert that knows the table.
#
#   bash examples/expert/run.sh [WORK-DIRECTORY]        (default: runs/expert)
#
# EPOCHS=3 trains three epochs instead of six.
# Run it again and it goes on where it stopped; delete the work directory to start afresh, or to have other EPOCHS.
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
work=${1:-runs/expert}
export TOWNS=$work/text/table.tsv
epochs=${EPOCHS:-6}
mkdir -p "$work"
same_settings "$work" "EPOCHS=$epochs"

task=("$work/data-bin" --user-dir fairseq_llrnn --task llrnn_translation --source-lang q --target-lang a --cpu
    --required-batch-size-multiple 1)

system() { # system NAME OPTION…: train it, and answer the questions of the test set
    local name=$1
    shift
    if [ ! -e "$work/$name/done" ]; then
        mkdir -p "$work/$name"
        run "$work/$name/train.log" fairseq-train "${task[@]}" "$@" --save-dir "$work/$name" --criterion log_linear \
            --arch llrnn_lstm --encoder-embed-dim 64 --encoder-hidden-size 64 --decoder-embed-dim 64 \
            --decoder-hidden-size 64 --decoder-layers 1 --dropout 0.1 --optimizer adam --lr 0.01 --clip-norm 1 \
            --max-tokens 400 --max-epoch "$epochs" --seed 1 --num-workers 0 --report-group Pattern \
            --no-epoch-checkpoints --log-format simple --log-interval 1000
        touch "$work/$name/done"
    fi
    grep -o 'valid on .*' "$work/$name/train.log" |
        sed "s/.*nats \([0-9.]*\).*nats_number \([0-9.]*\).*/$name: \1 nats a word, \2 nats a number/" |
        sort -k 2 -n | sed -n 1p # of the best epoch, whose checkpoint answers
    run "$work/$name/generate.txt" fairseq-generate "${task[@]}" "$@" --path "$work/$name/checkpoint_best.pt" --beam 5 \
        --max-len-b 20 --max-tokens 2000
    hypotheses "$work/$name/generate.txt" >"$work/$name/test.a"
}

say "1/4 a table of towns, and questions"
[ -e "$work/text/vocabulary.a.txt" ] || python examples/expert/make_questions.py "$work/text"

say "2/4 fairseq-preprocess, and a prior in which all numbers have the same features"
preprocess "$work/data-bin" -s q -t a --trainpref "$work/text/train" --validpref "$work/text/valid" \
    --testpref "$work/text/test" --srcdict "$work/text/vocabulary.q.txt" --tgtdict "$work/text/vocabulary.a.txt"
[ -e "$work/data-bin/prior" ] || llrnn prior --dict "$work/data-bin/dict.a.txt" --count-text "$work/text/train.a" \
    --set patterns=examples/expert/number.toml --top-words 30 --out "$work/data-bin/prior"

say "3/4 without the expert, and with it"
system alone
system expert --expert examples/expert/knows_the_table.py:KnowsTheTable

say "4/4 answers to questions about towns that no training question names"
python examples/expert/measure_answers.py "$work/text/test.q" "$work/text/test.a" alone="$work/alone/test.a" \
    expert="$work/expert/test.a" | tee "$work/table.md"
paste -d '|' "$work/text/test.q" "$work/expert/test.a" | sed -n '1,8{s/|/  →  /;p;}'
