#!/usr/bin/env bash
# Translation on the embedded English-French corpus: the same network with a softmax and with a log-linear output.
#
#   bash examples/translation/run.sh [WORK-DIRECTORY]        (default: runs/translation)
#
# In the environment, PAIRS=600 makes a bitext of so many training pairs (default: 6000) and EPOCHS=3 trains so many
# epochs at most (default: 12); with both, all takes less than a minute. Run it again and it goes on where it stopped;
# delete the work directory to start afresh, or give another one for other settings.
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
work=${1:-runs/translation}
pairs=${PAIRS:-6000} epochs=${EPOCHS:-12}
mkdir -p "$work"
same_settings "$work" "PAIRS=$pairs EPOCHS=$epochs"

train() { # train NAME: fairseq-train over the prior of that name
    if [ -e "$work/$1/done" ]; then
        echo "$1: trained already, in $work/$1"
        return
    fi
    mkdir -p "$work/$1"
    run "$work/$1/train.log" fairseq-train "$work/data-bin" --save-dir "$work/$1" --user-dir fairseq_llrnn \
        --task llrnn_translation --source-lang en --target-lang fr --prior "$work/data-bin/$1" \
        --arch llrnn_lstm --encoder-bidirectional --encoder-embed-dim 128 --encoder-hidden-size 128 \
        --decoder-embed-dim 128 --decoder-hidden-size 128 --decoder-layers 1 --dropout 0.2 --criterion log_linear \
        --optimizer adam --lr 0.004 --clip-norm 1 --max-tokens 500 --max-epoch "$epochs" --patience 3 --seed 1 \
        --cpu --required-batch-size-multiple 1 --num-workers 0 --no-epoch-checkpoints --log-format simple \
        --log-interval 1000
    perplexity "$1" "$work/$1/train.log"
    touch "$work/$1/done"
}

translate() { # translate NAME: the test sentences, one a line, in order
    if [ -e "$work/$1/test.fr" ]; then
        echo "$1: translated already, in $work/$1/test.fr"
        return
    fi
    # from the text, not from the binary data: that has only <unk> where the text has a word that no dictionary knows
    run "$work/$1/generate.txt" fairseq-interactive "$work/data-bin" --user-dir fairseq_llrnn --task llrnn_translation \
        --source-lang en --target-lang fr --prior "$work/data-bin/$1" --path "$work/$1/checkpoint_best.pt" --beam 5 \
        --max-len-b 40 --max-tokens 2000 --buffer-size 1000 --required-batch-size-multiple 1 --cpu \
        --input "$work/corpus/test.en"
    hypotheses "$work/$1/generate.txt" >"$work/$1/test.part"
    mv "$work/$1/test.part" "$work/$1/test.fr"
}

say "1/5 a small bitext; some of its numbers, names and word forms are kept from the training part"
[ -e "$work/corpus/vocabulary.fr.txt" ] ||
    python scripts/make_corpus.py --bilingual --sentences "$pairs" --out "$work/corpus"

say "2/5 fairseq-preprocess"
preprocess "$work/data-bin" -s en -t fr --trainpref "$work/corpus/train" --validpref "$work/corpus/valid" \
    --testpref "$work/corpus/test" --tgtdict "$work/corpus/vocabulary.fr.txt"

say "3/5 two priors: nothing (a softmax); morphology, shapes, what the source words mean, and evidence"
target=(--dict "$work/data-bin/dict.fr.txt" --count-text "$work/corpus/train.fr")
[ -e "$work/data-bin/softmax" ] || llrnn prior --softmax "${target[@]:0:2}" --out "$work/data-bin/softmax"
[ -e "$work/data-bin/log-linear" ] || llrnn prior "${target[@]}" --lexicon "$work/corpus/lexicon.tsv" --set words.keep_case=true \
    --shapes --suffixes --top-words 1000 --lexical-translation "$work/data-bin" --set translations.units=lemma --set translations.aligner=ibm1 \
    --evidence numbers,codes,names,copies --set evidence.mapping="$work/corpus/mapping.tsv" --out "$work/data-bin/log-linear"

say "4/5 training and translating, both at a time"
running=() failed=0
for system in softmax log-linear; do
    { train "$system" && translate "$system"; } &
    running+=($!)
done
for process in "${running[@]}"; do wait "$process" || failed=1; done
[ "$failed" = 0 ]

say "5/5 the translations beside each other"
corpus=$work/corpus
llrnn report --source "$corpus/test.en" --reference "$corpus/test.fr" --train "$corpus/train.fr" \
    --lexicon "$corpus/lexicon.tsv" --facts "$corpus/test.facts.jsonl" --out "$work/report.html" \
    --system softmax="$work/softmax/test.fr" log-linear="$work/log-linear/test.fr"
