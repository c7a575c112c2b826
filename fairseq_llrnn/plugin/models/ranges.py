"""What sizes and probabilities our models take on the command line."""

from argparse import Namespace

from fairseq.dataclass import FairseqDataclass

from fairseq_llrnn.errors import OptionError, check_least


def check_sizes(args: Namespace | FairseqDataclass, *names: str) -> None:
    """Raise OptionError for a size below 1."""
    for name in names:
        check_least(f"--{name.replace('_', '-')}", getattr(args, name), 1)


def check_dropouts(args: Namespace | FairseqDataclass, *names: str) -> None:
    """Raise OptionError for what is no probability below 1."""
    for name in names:
        probability = getattr(args, name, None)  # fairseq leaves out some that are not given
        if probability is not None and not 0.0 <= probability < 1.0:
            raise OptionError(f"--{name.replace('_', '-')} {probability}: expected a probability from 0 to below 1")
