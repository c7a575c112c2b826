#!/usr/bin/env bash
# Czech to English on a small part of Multi30k: what the encoder reads. Same target side in all rows; the same network
# and updates in the rows of an LSTM, and in those of a Transformer (tran-…).
#
#   bash examples/translation/source_prior.sh CS-FOLDER EN-FOLDER TREEBANKS [WORK-DIRECTORY]
#
# CS-FOLDER and EN-FOLDER hold {train,val,test2016}.tok.{cs,en}.gz, TREEBANKS the Czech *.conllu.gz. In the environment:
# PAIRS=4000 training pairs, EPOCHS=8 (a Transformer takes three times as many), SEEDS="1", and which of the rows:
# ROWS="table-known source-suffixes source-treebanks table-every tran-table-known tran-source-suffixes".
# Run it again and it goes on where it stopped, with the same PAIRS and EPOCHS.
set -euo pipefail
cs=$(realpath "$1") en=$(realpath "$2") treebanks=$(realpath "$3")
. "$(dirname "$0")/../stages.sh"
work=${4:-runs/source-prior}
pairs=${PAIRS:-4000} epochs=${EPOCHS:-8} # of LSTMs
mkdir -p "$work"
same_settings "$work" "PAIRS=$pairs EPOCHS=$epochs"
mkdir -p "$work/text"

say "1/3 texts: $pairs pairs; the Czech dictionary has the words of all texts, or those that training shows twice"
for split in train val test2016; do
    for side in cs en; do
        from=$cs/$split.tok.$side.gz
        [ -e "$from" ] || from=$en/$split.tok.$side.gz
        lines=$pairs
        [ $split = train ] || lines=100000
        first_lines "$lines" "$from" "$work/text/$split.$side"
    done
done
cat "$work"/text/*.cs >"$work/all.cs"
preprocess "$work/all" --only-source -s cs -t en --trainpref "$work/all" --dict-only
texts=(--trainpref "$work/text/train" --validpref "$work/text/val" --testpref "$work/text/test2016")
preprocess "$work/known" -s cs -t en "${texts[@]}" --thresholdsrc 2
preprocess "$work/every" -s cs -t en "${texts[@]}" --srcdict "$work/all/dict.cs.txt" --tgtdict "$work/known/dict.en.txt"

say "2/3 priors: of English, the same in all rows; of Czech, suffixes, or treebanks with guesses and suffixes"
for data in known every; do
    [ -e "$work/$data/prior" ] || llrnn prior --dict "$work/$data/dict.en.txt" --count-text "$work/text/train.en" \
        --suffixes --shapes --out "$work/$data/prior"
done
source=(--dict "$work/every/dict.cs.txt" --count-text "$work/text/train.cs" --suffixes --shapes)
[ -e "$work/every/suffixes" ] || llrnn prior "${source[@]}" --out "$work/every/suffixes"
[ -e "$work/every/treebanks" ] ||
    llrnn prior "${source[@]}" --conllu "$treebanks"/*.conllu.gz --out "$work/every/treebanks"

say "3/3 training and translation"
row() { # row NAME SEED DATA OPTIONS…
    local place=$work/$1-$2 name=$1 seed=$2 data=$work/$3 most=$epochs network
    shift 3
    [[ ! -e $place/test.log && " ${ROWS:-$name} " == *" $name "* ]] || return 0
    case $name in
    tran-*)
        network=(--arch llrnn_transformer_multi30k --lr-scheduler inverse_sqrt --warmup-updates 200)
        most=$((3 * epochs))
        ;;
    *)
        network=(--arch llrnn_lstm_multi30k --encoder-embed-dim 128 --encoder-hidden-size 128
            --decoder-embed-dim 128 --decoder-hidden-size 128)
        ;;
    esac
    mkdir -p "$place"
    run "$place/train.log" fairseq-train "$data" --save-dir "$place" --user-dir fairseq_llrnn --task llrnn_translation \
        --source-lang cs --target-lang en "${network[@]}" --dropout 0.3 --criterion log_linear --bf16-products "$@" \
        --optimizer adam --lr 0.003 --clip-norm 1 --max-tokens 1500 --max-epoch "$most" --seed "$seed" --cpu \
        --required-batch-size-multiple 1 --num-workers 0 --no-epoch-checkpoints --no-last-checkpoints \
        --log-format simple --log-interval 1000
    run "$place/test.part" fairseq-generate "$data" --user-dir fairseq_llrnn --task llrnn_translation \
        --path "$place/checkpoint_best.pt" --gen-subset test --beam 5 --max-len-b 40 --max-tokens 3000 --cpu \
        --required-batch-size-multiple 1 --num-workers 0 --scoring sacrebleu
    mv "$place/test.part" "$place/test.log"
    perplexity "$name-$seed" "$place/train.log"
    grep -o 'BLEU = [0-9.]*' "$place/test.log"
}
for seed in ${SEEDS:-1}; do
    row table-known "$seed" known
    row source-suffixes "$seed" every --source-prior "$work/every/suffixes"
    row source-treebanks "$seed" every --source-prior "$work/every/treebanks"
    row table-every "$seed" every
    row tran-table-known "$seed" known
    row tran-source-suffixes "$seed" every --source-prior "$work/every/suffixes"
done
