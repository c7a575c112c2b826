"""Tiny fast tokenizers of four kinds, trained on a few lines; no network."""

import json
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

LINES = ["yes no maybe", "12 123 112 2 5", "le chat dort", "café über", '{"a": 1, "b"}', "the cat sat on the mat"] * 4
SPECIAL = ["<pad>", "<end>", "<unk>"]
KINDS = ("byte_level", "sentencepiece_bpe", "unigram", "wordpiece")


def tiny_tokenizer(kind: str, size: int = 400, lines: list[str] = LINES) -> Any:
    """A PreTrainedTokenizerFast with `<pad>`, `<end>` and `<unk>`."""
    from transformers import PreTrainedTokenizerFast

    if kind == "byte_level":
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet)
    elif kind == "sentencepiece_bpe":
        backend = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        backend.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        as_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=[*SPECIAL, *as_bytes])
        backend.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    elif kind == "unigram":
        backend = Tokenizer(models.Unigram())
        backend.pre_tokenizer = pre_tokenizers.Metaspace()
        backend.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=SPECIAL, unk_token="<unk>")
    else:
        backend = Tokenizer(models.WordPiece(unk_token="<unk>"))
        backend.normalizer = normalizers.BertNormalizer(lowercase=True)
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=SPECIAL)
    trainer.show_progress = False
    backend.train_from_iterator(lines, trainer)
    if kind == "sentencepiece_bpe":
        trained = json.loads(backend.to_str())  # bytes are ordinary tokens
        trained.update(pre_tokenizer=None, added_tokens=trained["added_tokens"][: len(SPECIAL)])
        backend = Tokenizer.from_str(json.dumps(trained))
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", eos_token="<end>", unk_token="<unk>")
