#!/usr/bin/env bash
# The demo: a small corpus, two softmaxes and a log-linear model of the same shape, and what each has learnt.
#
#   bash examples/quickstart/run.sh [WORK-DIRECTORY]        (default: runs/quickstart)
#
# Run it again and it goes on where it stopped; delete the work directory to start afresh.
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
work=${1:-runs/quickstart}
mkdir -p "$work"

train() { # train NAME OPTION…: fairseq-train with the options that all models share; prints one line an epoch
    local folder=$work/$1
    shift
    if [ -e "$folder/done" ]; then
        echo "trained already, in $folder"
        return
    fi
    mkdir -p "$folder"
    fairseq-train "$work/data-bin" --save-dir "$folder" "$@" --cpu --seed 1 \
        --decoder-embed-dim 128 --decoder-hidden-size 128 --decoder-layers 1 --dropout 0.2 \
        --optimizer adam --lr 0.005 --clip-norm 5 --batch-size 64 --max-epoch 7 --patience 2 \
        --sample-break-mode eos --tokens-per-sample 64 --num-workers 0 \
        --no-epoch-checkpoints --log-format simple --log-interval 1000 2>&1 |
        tee "$folder/train.log" |
        awk '/\| valid \| epoch/ { for (i = 1; i < NF; i++) if ($i == "ppl") {
            print "epoch", $9 + 0 ": validation perplexity", $(i + 1); fflush() } }' ||
        fail "$folder/train.log" fairseq-train
    touch "$folder/done"
}

say "1/6 a small corpus in a French-like language; some of its words are kept from the training text"
if [ ! -e "$work/corpus/probes.jsonl" ]; then
    python scripts/make_corpus.py --out "$work/corpus"
fi

say "2/6 fairseq-preprocess"
if [ ! -e "$work/data-bin/done" ]; then
    run "$work/preprocess.log" fairseq-preprocess --only-source --destdir "$work/data-bin" \
        --srcdict "$work/corpus/vocabulary.txt" --trainpref "$work/corpus/train.txt" \
        --validpref "$work/corpus/valid.txt" --testpref "$work/corpus/test.txt"
    touch "$work/data-bin/done"
fi
ls "$work/data-bin"

say "3/6 the prior: what is known of each word before training"
if [ ! -e "$work/data-bin/prior/prior.json" ]; then
    llrnn prior --lexicon "$work/corpus/lexicon.tsv" --dict "$work/data-bin/dict.txt" \
        --count-text "$work/corpus/train.txt" --top-words 1000 --shapes --background unigram \
        --out "$work/data-bin/prior"
fi
if [ ! -e "$work/data-bin/words/prior.json" ]; then
    llrnn prior --dict "$work/data-bin/dict.txt" --count-text "$work/corpus/train.txt" --top-words all \
        --background unigram --out "$work/data-bin/words"
fi

say "4/6 training fairseq's softmax model (lstm_lm, cross_entropy)"
TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 train softmax --task language_modeling --arch lstm_lm --criterion cross_entropy --decoder-out-embed-dim 128

say "5/6 training a softmax over the unigram, and the log-linear model (llrnn_lm, log_linear)"
ours=(--user-dir fairseq_llrnn --task llrnn_language_modeling --arch llrnn_lm --criterion log_linear)
train softmax-unigram "${ours[@]}" --prior "$work/data-bin/words"
train log-linear "${ours[@]}"

say "6/6 what they have learnt"
python examples/quickstart/demo_report.py --corpus "$work/corpus" --data "$work/data-bin" --out "$work" \
    --model softmax="$work/softmax" --model "softmax, unigram"="$work/softmax-unigram" \
    --model log-linear="$work/log-linear"

say "why? each word of: $(cat "$work/sentence.txt")"
llrnn explain --path "$work/log-linear/checkpoint_best.pt" --top 3 - <"$work/sentence.txt"
