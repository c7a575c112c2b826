"""Named architectures of llrnn_lm with words represented by their characters."""

from argparse import Namespace

from fairseq.models import register_model_architecture

from fairseq_llrnn.plugin.models.options import set_defaults
from fairseq_llrnn.systems.characters.network import LARGE, SMALL, format_filters
from fairseq_llrnn.systems.characters.plugin import CNN


@register_model_architecture("llrnn_lm", "llrnn_lm_char_small")
def char_small(args: Namespace) -> None:
    """Words represented by their characters, two layers of 300: LSTM-Char-Small (Jernite 2018, Table 2.2)."""
    _by_characters(args, format_filters(SMALL), "1", 300)


@register_model_architecture("llrnn_lm", "llrnn_lm_char_large")
def char_large(args: Namespace) -> None:
    """Words represented by their characters, two layers of 650: LSTM-Char-Large (Jernite 2018, Table 2.2)."""
    _by_characters(args, format_filters(LARGE), "2", 650)


def _by_characters(args: Namespace, filters: str, highway_layers: str, hidden_size: int) -> None:
    """Set the thesis' options (§2.3). Dropout is 0 on the character vectors, and 0.5 elsewhere."""
    set_defaults(
        args,
        input_characters=CNN,
        character_embed_dim=15,
        character_filters=filters,
        highway_layers=highway_layers,
        decoder_hidden_size=hidden_size,
        decoder_layers=2,
        dropout=0.5,
        dropout_in=0.0,
    )
