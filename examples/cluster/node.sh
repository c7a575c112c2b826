#!/bin/sh
# The processes of one machine. Run it on every machine of a training, at about the same time.
#
#   PROCESSES=8 NODES=4 NODE=0 MASTER=first-machine PORT=29500 sh examples/cluster/node.sh DATA OPTIONS-OF-FAIRSEQ-TRAIN…
#
# PROCESSES of this machine (default: one for each GPU); NODES, how many machines (1); NODE, which one this is (0);
# MASTER and PORT, where they meet: machine 0 and a free port of it.
exec torchrun --nproc_per_node "${PROCESSES:-gpu}" --nnodes "${NODES:-1}" --node_rank "${NODE:-0}" \
    --master_addr "${MASTER:-127.0.0.1}" --master_port "${PORT:-29500}" \
    --no-python sh "$(dirname "$0")/worker.sh" "$@"
