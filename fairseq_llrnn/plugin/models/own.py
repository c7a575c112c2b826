"""What every model of ours does."""

from argparse import ArgumentParser

from fairseq.models import BaseFairseqModel

from fairseq_llrnn.plugin.compat.user_errors import enter_command


class OwnModel(BaseFairseqModel):
    """A model that ends in a log-linear layer over the prior of its task."""

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """The model's options. fairseq asks for them when a command line names the model."""
        enter_command()
        super().add_args(parser)
