#!/usr/bin/env bash
# Make the priors and checkpoints of stored.zip: bash tests/stored/make.sh priors|models FOLDER
#
# Run it in a checkout of v0.2.0-rc1 with this folder copied to its tests/stored; record.py then writes the scores.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
step=$1
mkdir -p "$2" && cd "$2"

prior() { # NAME DICTIONARY OPTIONS…
    llrnn prior --dict "$2" "${@:3}" --out "priors/$1" > "log-$1.txt" 2>&1 || { cat "log-$1.txt"; exit 1; }
}

text_data() { # FOLDER SPLIT-PREFIX
    fairseq-preprocess --only-source --trainpref "$2train.txt" --validpref "$2valid.txt" --testpref "$2test.txt" \
        --destdir "$1" > /dev/null 2>&1
}

pair_data() { # FOLDER SPLIT-PREFIX SOURCE TARGET OPTIONS…
    fairseq-preprocess -s "$3" -t "$4" --trainpref "$2train" --validpref "$2valid" --testpref "$2test" \
        --destdir "$1" "${@:5}" > /dev/null 2>&1
}

train() { # NAME DATA PRIOR ARCHITECTURE OPTIONS…
    [ ! -e "models/$1/checkpoint_last.pt" ] || return 0
    llrnn train "$2" --prior "priors/$3" --arch "$4" "${@:5}" --cpu --max-update 12 --lr 0.01 --max-tokens 256 --seed 1 \
        --num-workers 0 --no-save-optimizer-state --no-epoch-checkpoints --disable-validation --save-dir "models/$1" \
        > "log-$1.txt" 2>&1 || { tail -n 30 "log-$1.txt"; exit 1; }
    rm -f "models/$1"/crash.pt
}

priors() {
    python "$here/make_texts.py"
    text_data text ''
    pair_data pair '' src tgt
    pair_data pieces pieces- src tgt --joined-dictionary
    pair_data label '' text labels
    llrnn discourse --train=novel-train.txt --valid=novel-valid.txt --test=novel-test.txt --language en --lower \
        --out novel > log-novel.txt 2>&1
    llrnn mrf train --text train.txt --words 30 --width 2 --iterations 3 --out field > log-field.txt 2>&1

    words=(--lexicon lexicon.tsv --top-words 20)
    bitext=(--lexical-translation pair --set translations.aligner=ibm1)
    evidence=(--set evidence.mapping=map.tsv --evidence numbers,names,copies)
    text=(text/dict.txt --count-text train.txt "${words[@]}")
    prior unigram "${text[@]}" --suffixes 2 --shapes --set patterns=patterns.toml --set input_features=POS \
        --set input_top_words=30
    prior softmax text/dict.txt --softmax
    prior smoothed "${text[@]}" --background 'unigram(smoothing=additive, pseudo_count=0.5)'
    prior weights "${text[@]}" --background weights.tsv
    prior ngram "${text[@]}" --background 'ngram(3, folds=3, prune=[0, 0, 1], weight=0.9, temperature=1.5)'
    prior grammar "${text[@]}" --background 'automaton(grammar.txt, on_zero=floor)'
    prior cache "${text[@]}" --background 'cache(9, weight=0.8, decay=0.9)'
    prior field "${text[@]}" --background mrf:field
    prior mixture "${text[@]}" --background '0.6 ngram:2 plus 0.4 cache(20, learned) with weights learned'
    prior product "${text[@]}" \
        --background '(automaton(grammar.txt, on_zero=skip) times (ngram:2 plus unigram with weights per position)) at temperature 2'
    prior static "${text[@]}" --background 'ngram(2, text=test.txt) plus weights.tsv plus uniform' --set over=unigram\(smoothing=additive\)
    prior open "${text[@]}" --open-vocabulary characters --set open_vocabulary.types=3 \
        --background 'unigram plus cache:9'
    prior spelled "${text[@]}" --open-vocabulary neural --set open_vocabulary.types=3 --background ngram:2
    head -n 40 lexicon.tsv > half.tsv
    prior guessed text/dict.txt --count-text train.txt --lexicon half.tsv --top-words 5
    prior evidence pair/dict.tgt.txt "${words[@]}" --suffixes 2 --shapes "${evidence[@]}"
    prior lexical pair/dict.tgt.txt "${words[@]}" --suffixes 2 --shapes "${evidence[@]}",translations "${bitext[@]}" \
        --set translations.learned=true evidence.weight=0.5
    prior terms pair/dict.tgt.txt --top-words 20 --suffixes 2 --shapes "${bitext[@]}" \
        --evidence terms,numbers,names,copies
    prior lemmas pair/dict.tgt.txt --count-text train.tgt --lexicon lemmas.tgt.tsv --top-words 20 "${bitext[@]}" \
        --set translations.units=lemma translations.source_lexicon=lemmas.src.tsv --background ngram:2
    prior placed pair/dict.tgt.txt --count-text train.tgt "${words[@]}" "${bitext[@]}" \
        --background '0.5 ngram:2 plus 0.3 translations plus 0.2 unigram' --evidence numbers,copies \
        --set evidence.unsupported.names=0.25
    prior pieces pieces/dict.tgt.txt --pieces sentencepiece --count-text pieces-train.tgt --lexicon lexicon.tsv \
        --suffixes 2 --shapes --top-words all --lexical-translation pieces --set translations.aligner=ibm1 \
        "${evidence[@]}"
    prior labels label/dict.labels.txt --labels --suffixes 2
    prior novel novel/dict.txt --suffixes 2 --shapes --top-words 30
}

models() {
    narrow=(--decoder-embed-dim 8 --decoder-hidden-size 8)
    both=(--encoder-embed-dim 8 --encoder-hidden-size 4 "${narrow[@]}")
    heads=(--encoder-embed-dim 8 --encoder-ffn-embed-dim 8 --encoder-layers 1 --encoder-attention-heads 2
        --decoder-layers 1 --decoder-attention-heads 2)
    train lm text unigram llrnn_lm "${narrow[@]}"
    train lm-mixture text mixture llrnn_lm "${narrow[@]}"
    train lm-product text product llrnn_lm "${narrow[@]}" --tie-features
    train lm-characters text open llrnn_lm "${narrow[@]}" --input-characters cnn --character-filters 1:3,3:5 \
        --character-mode add
    train lm-spelled text spelled llrnn_lm "${narrow[@]}" --learn-background-temperature \
        --speller-embed-dim 4 --speller-hidden-size 4
    train lm-tree text unigram llrnn_lm "${narrow[@]}" --output-tree learned --tree-arity 3
    train lbl text ngram llrnn_lbl "${narrow[@]}"
    train lstm pair evidence llrnn_lstm "${both[@]}"
    train transformer pair lexical llrnn_transformer "${heads[@]}"
    train transformer-pieces pieces pieces llrnn_transformer "${heads[@]}"
    train transformer-terms pair terms llrnn_transformer "${heads[@]}" --term-forms forms.tsv
    train rctm pair lemmas llrnn_rctm --encoder-embed-dim 5 "${narrow[@]}"
    train encoder-decoder pair placed llrnn_encoder_decoder "${both[@]}" --maxout-units 6 --decoder-output-dim 5
    train rnnsearch pair evidence llrnn_rnnsearch "${both[@]}"
    train bag label labels llrnn_bag --encoder-embed-dim 8 --batch-size 16
    train classifier label labels llrnn_classifier --encoder-embed-dim 8 --encoder-hidden-size 4 --batch-size 16
    llrnn train novel --task discourse --arch discourse_encoder \
        --criterion discourse --optimizer adagrad --batch-size 16 --sentence-dim 8 --encoder-embed-dim 8 --cpu --max-update 6 --seed 1 \
        --no-save-optimizer-state --no-epoch-checkpoints --disable-validation --num-workers 0 --save-dir models/discourse \
        > log-discourse.txt 2>&1 || { tail -n 30 log-discourse.txt; exit 1; }
    prior model text/dict.txt --count-text train.txt --background 'model(models/lm/checkpoint_last.pt, weight=0.9)'
}

"$step"
