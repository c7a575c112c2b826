"""The option --shard I/N."""

import argparse

from fairseq_llrnn.files.shards import Shard


def shard(text: str) -> Shard:
    """For argparse."""
    try:
        return Shard.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
