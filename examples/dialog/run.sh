#!/usr/bin/env bash
# From dialog acts to sentences: values of the act are evidence slots, and without evidence no value can be said.
#
#   bash examples/dialog/run.sh [WORK-DIRECTORY [DATA]]        (default: runs/dialog-toy, a made-up data set)
#
# DATA: a folder of RNNLG with train, valid and test.json (.gz), say …/rnnlg/restaurant.
# Run it again and it goes on where it stopped; delete the work directory to start afresh. Another SEED (default: 1) in
# the environment has a work directory of its own.
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
work=${1:-runs/dialog-toy}
data=${2:-$work/toy}
seed=${SEED:-1}
mkdir -p "$work"
same_settings "$work" "SEED=$seed DATA=$data"
export TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 # fairseq's own model reads its checkpoint only so; ours is read safely all the same
dialog=examples/dialog/dialog.py
text=$work/text
width=128 epochs=14
[ $# -ge 2 ] || width=64 epochs=5 # the made-up sentences are easy
sizes=(--encoder-bidirectional --encoder-embed-dim 64 --encoder-hidden-size "$width" --decoder-embed-dim 128
    --decoder-hidden-size $((2 * width)) --decoder-layers 1 --dropout 0.4 --label-smoothing 0.1)
recipe=(--optimizer adam --lr 0.004 --force-anneal 8 --lr-shrink 0.7 --clip-norm 1 --max-tokens 250
    --max-epoch "$epochs" --seed "$seed" --cpu --required-batch-size-multiple 1 --num-workers 0
    --no-epoch-checkpoints --log-format simple --log-interval 1000)

train() { # train NAME DATA OPTION…
    local folder=$work/$1
    if [ -e "$folder/done" ]; then
        echo "$1: trained already, in $folder"
        return
    fi
    mkdir -p "$folder"
    run "$folder/train.log" fairseq-train "$2" --save-dir "$folder" --source-lang act \
        --target-lang sent "${sizes[@]}" "${recipe[@]}" "${@:3}"
    perplexity "$1" "$folder/train.log"
    touch "$folder/done"
}

generate() { # generate NAME DATA ACTS OPTION…: twenty hypotheses for each act
    local folder=$work/$1
    [ -e "$folder/test.nbest" ] || run "$folder/test.part" fairseq-interactive "$2" --path "$folder/checkpoint_best.pt" \
        --source-lang act --target-lang sent --beam 20 --nbest 20 --max-len-b 60 --cpu \
        --max-tokens 1000 --buffer-size 1000 --required-batch-size-multiple 1 --input "$3" "${@:4}"
    [ -e "$folder/test.nbest" ] || mv "$folder/test.part" "$folder/test.nbest"
}

say "1/5 the data"
[ $# -ge 2 ] || [ -e "$data/test.json" ] || python $dialog toy --out "$data"
[ -e "$text/done" ] || { python $dialog prepare --data "$data" --out "$text"; touch "$text/done"; }

say "2/5 fairseq-preprocess; the prior: values and #words have no background but as slots; the encoder reads slots, too"
known=(--srcdict "$text/dict.act.txt" --tgtdict "$text/dict.sent.txt")
preprocess "$work/data-bin" -s act -t sent --trainpref "$text/train" --validpref "$text/valid" "${known[@]}"
preprocess "$work/plain-bin" -s act -t sent --trainpref "$text/plain/train" "${known[@]}"
preprocess "$work/delexicalised-bin" -s act -t sent --trainpref "$text/delexicalised/train" \
    --validpref "$text/delexicalised/valid"
[ -e "$work/data-bin/prior" ] || llrnn prior --dict "$work/data-bin/dict.sent.txt" --count-text "$text/counted.sent" \
    --top-words "$(cat "$text/top-words.sent")" --lexical-translation "$work/plain-bin" --set translations.aligner=ibm1 \
    --set patterns="$text/patterns.toml" --evidence patterns --set evidence.mapping="$text/mapping.tsv" --set evidence.unsupported.urls=0 \
    --out "$work/data-bin/prior"
[ -e "$work/data-bin/source" ] || llrnn prior --dict "$work/data-bin/dict.act.txt" --count-text "$text/plain/train.act" \
    --top-words "$(cat "$text/top-words.act")" --set patterns="$text/patterns.toml" --out "$work/data-bin/source"

say "3/5 training: with evidence; with an expert that knows what has been said; a plain softmax"
evidence=(--user-dir fairseq_llrnn --task llrnn_translation --prior "$work/data-bin/prior"
    --source-prior "$work/data-bin/source")
coverage=("${evidence[@]}" --expert examples/dialog/dialog_experts.py:Coverage)
ours=(--arch llrnn_lstm --criterion log_linear --report-group none --evidence-dropout 0.1 --invented-evidence 0)
train coverage "$work/data-bin" "${coverage[@]}" "${ours[@]}"
train evidence "$work/data-bin" "${evidence[@]}" "${ours[@]}"
train softmax "$work/delexicalised-bin" --task translation --arch lstm --decoder-out-embed-dim 128 \
    --criterion label_smoothed_cross_entropy

say "4/5 twenty sentences for each act of the test set"
generate coverage "$work/data-bin" "$text/test.acts" "${coverage[@]}"
generate evidence "$work/data-bin" "$text/test.acts" "${evidence[@]}"
generate softmax "$work/delexicalised-bin" "$text/delexicalised/test.acts" --task translation

say "5/5 BLEU, and slots that are missing or added"
python $dialog score --data "$data" --system coverage="$work/coverage/test.nbest" \
    evidence="$work/evidence/test.nbest" --delexicalised softmax="$work/softmax/test.nbest" | tee "$work/scores.txt"
