#!/usr/bin/env bash
# The whole comparison, stage by stage; what is done is skipped.
#
#   bash examples/adaptation/run.sh                                    a small pair of texts that the project makes itself
#   bash examples/adaptation/run.sh GENERAL_UD DOMAINS [OUT [RESULTS]] treebanks: folders as README.md says
set -euo pipefail
. "$(dirname "$0")/../stages.sh"
# A softmax over the vocabulary takes and returns hundreds of MB a step; without these settings glibc gives them back to
# the kernel each time.
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184 GLIBC_TUNABLES=glibc.malloc.hugetlb=1
texts=() out=runs/adaptation-toy
if [ $# -ge 2 ]; then
    texts=(--general "$1" --domains "$2") out=${3:-runs/adaptation}
fi
results=${4:-$out}
adapt=(nice -n "${NICE:-10}" python examples/adaptation/adapt.py)

"${adapt[@]}" prepare --out "$out" "${texts[@]}"
"${adapt[@]}" general --out "$out" "${texts[@]}"
"${adapt[@]}" train --out "$out" "${texts[@]}"
"${adapt[@]}" report --out "$out" --results "$results"
