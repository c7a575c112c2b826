#!/bin/sh
# One process of a training, told of all the others by what torchrun sets: WORLD_SIZE, RANK, LOCAL_RANK, MASTER_ADDR, MASTER_PORT.
#
#   torchrun … --no-python examples/cluster/worker.sh DATA OPTIONS-OF-FAIRSEQ-TRAIN…
#
# Processes meet by NCCL, or by Gloo with --cpu; BACKEND names another way. A later option of the same name wins.
backend=nccl
for option; do
    [ "$option" = --cpu ] && backend=gloo
done
exec fairseq-train --distributed-backend "${BACKEND:-$backend}" --ddp-backend legacy_ddp "$@" \
    --distributed-init-method env:// --distributed-no-spawn --distributed-world-size "$WORLD_SIZE" \
    --distributed-rank "$RANK" --device-id "$LOCAL_RANK"
