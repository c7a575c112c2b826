#!/usr/bin/env bash
# Rare words in translation: annotated unknown words (Luong et al. 2015) next to a lexical background and slots. All rows
# have the same network; docs/results/terms-and-copying.md has the results. One row is hybrid (Luong & Manning 2016): a
# network reads source words by their characters, and another network spells unknown words.
#
#   bash examples/translation/rare_words.sh MULTI30K [WORK-DIRECTORY]
#
# MULTI30K holds {train,val,test2016}.tok.{en,fr}.gz. In the environment: PAIRS=10000 training pairs, WORDS=1500 that a
# limited vocabulary keeps, SEED=1, ROWS="NAME=UPDATES …" (default: all, with updates of about a minute).
# Run it again and it goes on where it stopped, with the same PAIRS, WORDS and SEED; a row that had fewer updates is
# trained on.
set -euo pipefail
corpus=$(realpath "$1")
work=$(realpath -m "${2:-runs/rare-words}")
. "$(dirname "$0")/../stages.sh"
pairs=${PAIRS:-10000} kept=${WORDS:-1500} seed=${SEED:-1}
mkdir -p "$work"
same_settings "$work" "PAIRS=$pairs WORDS=$kept SEED=$seed"
mkdir -p "$work/text"

say "1/3 texts: $pairs pairs; the $kept most frequent words of each language are kept"
for split in train valid=val test=test2016; do
    for side in en fr; do
        lines=$pairs
        [ "$split" = train ] || lines=100000
        first_lines "$lines" "$corpus/${split#*=}.tok.$side.gz" "$work/text/${split%=*}.$side"
    done
done
for scheme in copyable positional positional-all; do
    [ -e "$work/$scheme" ] || llrnn rare-words annotate --scheme $scheme --words "$kept" -s en -t fr \
        --trainpref "$work/text/train" --validpref "$work/text/valid" --testpref "$work/text/test" --destdir "$work/$scheme"
done
# what a model would have that annotates without a mistake: the reference, annotated and restored
awk 'NR == FNR { kept[$1]; next } { for (i = 1; i <= NF; i++) if (!($i in kept)) $i = "<unk>" } 1' \
    <(tr ' ' '\n' <"$work/positional/train.fr" | sort -u) "$work/text/valid.fr" >"$work/ceiling-unk.fr"
ceilings=("unk=$work/ceiling-unk.fr")
for scheme in copyable positional positional-all; do
    llrnn rare-words restore --data "$work/$scheme" --source "$work/text/valid.en" <"$work/$scheme/valid.fr" \
        >"$work/ceiling-$scheme.fr"
    ceilings+=("$scheme=$work/ceiling-$scheme.fr")
done
llrnn report --source "$work/text/valid.en" --reference "$work/text/valid.fr" --system "${ceilings[@]}" --tokenize none \
    --train "$work/text/train.fr" --out "$work/ceiling.html"

data() { # data NAME TEXTS OPTIONS…: binary data, or raw
    preprocess "$work/data/$1" -s en -t fr --trainpref "$2/train" --validpref "$2/valid" "${@:3}"
}
mkdir -p "$work/data"
data words "$work/text" --testpref "$work/text/test"
limited=(--nwordssrc $((kept + 4)) --nwordstgt $((kept + 4)) --padding-factor 1)
data unk "$work/text" --testpref "$work/text/test" "${limited[@]}"
data slots "$work/text" --testpref "$work/text/test" "${limited[@]}" --dataset-impl raw # which keeps rare words
data hybrid "$work/text" --testpref "$work/text/test" "${limited[@]}" --dataset-impl raw
for scheme in copyable positional positional-all; do data $scheme "$work/$scheme"; done

say "2/3 priors"
for data in unk copyable positional positional-all; do
    [ -e "$work/data/$data/prior" ] ||
        llrnn prior --softmax --dict "$work/data/$data/dict.fr.txt" --out "$work/data/$data/prior"
done
features=(--count-text "$work/text/train.fr" --shapes --suffixes --background unigram)
# of the source words that are not kept, what the alignment translates them by
awk -F '\t' 'NR == FNR { kept[$1]; next } !($1 in kept)' "$work/positional/source-words.txt" \
    "$work/positional/translations.tsv" >"$work/rare.tsv"
[ -e "$work/data/slots/prior" ] || llrnn prior --dict "$work/data/slots/dict.fr.txt" "${features[@]}" --top-words all \
    --lexical-translation "$work/data/unk" --evidence mapped,copies --set evidence.mapping="$work/rare.tsv" \
    --out "$work/data/slots/prior"
[ -e "$work/data/words/prior" ] || llrnn prior --dict "$work/data/words/dict.fr.txt" "${features[@]}" --top-words "$kept" \
    --lexical-translation "$work/data/words" --evidence numbers,names,copies --out "$work/data/words/prior"
[ -e "$work/data/hybrid/prior" ] || llrnn prior --dict "$work/data/hybrid/dict.fr.txt" "${features[@]}" --top-words all \
    --open-vocabulary neural --out "$work/data/hybrid/prior"

say "3/3 training and translation"
TIMEFORMAT='%U seconds of processor time'
row() { # row NAME UPDATES
    local name=$1 data=$work/data/${1%-*} place=$work/models/$1 impl=mmap options own=() text=$work/text/test.en
    local made=0
    [ ! -e "$work/$name.fr" ] || made=$(cat "$work/$name.updates")
    [ "$made" != "$2" ] || return 0
    [ "$made" -lt "$2" ] || {
        echo "run.sh: error: $work/$name.fr: expected $2 updates, found results of $made; give another folder" >&2
        exit 2
    }
    rm -f "$work/$name.fr"
    mkdir -p "$place"
    case $name in
    slots) impl=raw ;;
    hybrid) impl=raw own=(--source-characters cnn --speller-hidden-size 64) ;;
    positional-all) data=$work/data/positional-all ;;
    esac
    options=("$data" --user-dir fairseq_llrnn --task llrnn_translation --prior "$data/prior" --cpu)
    echo "$name, $2 updates, and translation:"
    time run "$place/train.log" fairseq-train "${options[@]}" "${own[@]}" --dataset-impl $impl --save-dir "$place" --arch llrnn_lstm \
        --encoder-embed-dim 128 --encoder-hidden-size 64 --encoder-bidirectional --decoder-embed-dim 128 \
        --decoder-hidden-size 128 --dropout 0.2 --criterion log_linear --optimizer adam --lr 0.004 --lr-scheduler \
        inverse_sqrt --warmup-updates 100 --clip-norm 1 --max-tokens 1500 --max-update "$2" --seed "$seed" \
        --required-batch-size-multiple 1 --num-workers 0 --no-epoch-checkpoints --log-format simple --log-interval 50
    perplexity "$name" "$place/train.log"
    options+=(--path "$place/checkpoint_best.pt" --beam 5 --max-len-b 80 --required-batch-size-multiple 1)
    case $name in
    unk)
        time run "$place/test.log" fairseq-generate "${options[@]}" --gen-subset test --print-alignment soft --max-tokens 3000
        python examples/translation/replace_unknown.py --generated "$place/test.log" --source "$text" --out "$work/$name.part" \
            --unknown-to "$work/data/unk/dict.en.txt"
        hypotheses "$place/test.log" >"$work/no-copies.fr"
        ;;
    slots | words | hybrid)
        time run "$place/test.log" fairseq-interactive "${options[@]}" --input "$text" --buffer-size 2000 --max-tokens 3000
        hypotheses "$place/test.log" >"$work/$name.part"
        ;;
    *)
        time run "$place/test.log" fairseq-interactive "${options[@]}" --input "$work/$name/test.en" --buffer-size 2000 \
            --max-tokens 3000
        hypotheses "$place/test.log" | llrnn rare-words restore --data "$work/$name" --source "$text" \
            --out "$work/$name.part"
        ;;
    esac
    echo "$2" >"$work/$name.updates"
    mv "$work/$name.part" "$work/$name.fr"
}
for pair in ${ROWS:-unk=600 copyable=600 positional=600 positional-all=540 slots=420 words=540 hybrid=330}; do
    row "${pair%=*}" "${pair#*=}"
done

systems=()
for name in no-copies unk copyable positional positional-all slots words hybrid; do
    [ ! -e "$work/$name.fr" ] || systems+=("$name=$work/$name.fr")
done
llrnn report --source "$work/text/test.en" --reference "$work/text/test.fr" --system "${systems[@]}" --tokenize none \
    --train "$work/text/train.fr" --out "$work/report.html"
