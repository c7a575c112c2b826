#!/usr/bin/env bash
# `llrnn compare` without and with a lexicon, on Hungarian and on parts of four treebanks.
#
#   bash examples/open_vocabulary/lexicons.sh UD LEXICONS OUT [OPTION …]
#
# UD has the folders of Universal Dependencies. LEXICONS has hu_HU.dic, de_DE.dic, el_GR.dic and et_EE.dic of Debian's
# hunspell-hu, -de-de, -el and myspell-et with their .aff, and `est` of UniMorph. Options go to `llrnn compare`.
set -euo pipefail
ud=$1 lexicons=$2 out=$3
shift 3

part() {  # FILE N K NEW: every Nth sentence, from the Kth on
    mkdir -p "$(dirname "$4")"
    awk -v RS= -v ORS='\n\n' -v n="$2" -v k="$3" 'NR % n == k % n' "$1" > "$4"
}
compared() {  # NAME TREEBANK LEXICON …
    local name=$1 treebank=$2
    shift 2
    llrnn compare "$treebank" --quick --models ngrams lexicon mixed "${options[@]}" --out "$out/$name"
    llrnn compare "$treebank" --quick --models ngrams softmax softmax-unigram lexicon mixed "${options[@]}" \
        --spelling-lexicon "$@" --out "$out/$name-lexicon"
}
options=("$@")

# the test file of these two treebanks is the training text
for name in German-GSD/de_gsd Finnish-TDT/fi_tdt; do
    new="$out/UD_$name"
    part "$ud/UD_$name-ud-test.conllu" 1 1 "$new-ud-train.conllu"
    part "$ud/UD_$name-ud-dev.conllu" 2 1 "$new-ud-dev.conllu"
    part "$ud/UD_$name-ud-dev.conllu" 2 2 "$new-ud-test.conllu"
done
estonian=UD_Estonian-EDT/et_edt-ud
part "$ud/$estonian-test.conllu" 2 1 "$out/$estonian-train.conllu"
part "$ud/$estonian-dev.conllu" 6 1 "$out/$estonian-dev.conllu"
part "$ud/$estonian-dev.conllu" 6 4 "$out/$estonian-test.conllu"
for split in train dev test; do
    part "$ud/UD_Greek-GDT/el_gdt-ud-$split.conllu" 2 1 "$out/UD_Greek-GDT/el_gdt-ud-$split.conllu"
done

compared german "$out/UD_German-GSD" language:de "$lexicons/de_DE.dic"
compared finnish "$out/UD_Finnish-TDT" language:fi
compared greek "$out/UD_Greek-GDT" language:el "$lexicons/el_GR.dic"
compared estonian "$out/UD_Estonian-EDT" "$lexicons/est" "$lexicons/et_EE.dic"
compared hungarian "$ud/UD_Hungarian-Szeged" language:hu "$lexicons/hu_HU.dic"
