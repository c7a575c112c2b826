"""A tiny world for translation: the sentences of tiny_world, and the same sentences spelt backwards as their source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from same_training import resumed_as_whole
from shell import Shell
from tiny_world import EVERY_SENTENCE, SPLITS, USER_DIR, Setting, World
from torch.nn.utils.rnn import pad_sequence

LSTM_SIZES = [
    "--encoder-embed-dim", "12", "--encoder-hidden-size", "8", "--decoder-embed-dim", "12", "--decoder-hidden-size",
    "16",
]  # fmt: skip
SIZES = {
    "llrnn_seq2seq": LSTM_SIZES,
    "llrnn_rnnsearch": LSTM_SIZES,
    "llrnn_lstm": [*LSTM_SIZES, "--decoder-layers", "2"],
    "llrnn_rctm": ["--encoder-embed-dim", "9", "--decoder-embed-dim", "12", "--decoder-hidden-size", "16"],
    "llrnn_encoder_decoder": [*LSTM_SIZES, "--maxout-units", "14", "--decoder-output-dim", "10"],
    "llrnn_transformer": [
        "--encoder-embed-dim", "16", "--encoder-ffn-embed-dim", "24", "--encoder-layers", "2",
        "--encoder-attention-heads", "2", "--decoder-layers", "2", "--decoder-attention-heads", "2", "--dropout", "0",
    ],
}  # fmt: skip
TRAINING = [
    "--criterion", "log_linear", "--max-tokens", "128", "--optimizer", "adam", "--lr", "0.01", "--clip-norm", "1.0",
    "--seed", "1", "--num-workers", "0", "--log-format", "json", "--log-interval", "1", *EVERY_SENTENCE,
]  # fmt: skip


def source_of(line: str) -> str:
    """The source of a sentence: every word spelt backwards."""
    return " ".join(word[::-1] for word in line.split())


@dataclass(frozen=True)
class TranslationWorld:
    """Where everything lies: src -> tgt."""

    place: Path
    world: World

    @property
    def data(self) -> Path:
        """The data-bin; `prior`, `softmax`, `separate` and `lexical` in it are priors of the target."""
        return self.place / "data-bin"

    def task_args(self, prior: str = "prior") -> list[str]:
        return [
            str(self.data), "--user-dir", str(USER_DIR), "--task", "llrnn_translation", "--prior",
            str(self.data / prior), "--source-lang", "src", "--target-lang", "tgt", "--cpu",
        ]  # fmt: skip

    def train_args(self, arch: str = "llrnn_lstm", prior: str = "prior", save_dir: Path | None = None) -> list[str]:
        """A small model and a few large steps; a later option of the same name wins."""
        saving = ["--no-save"] if save_dir is None else ["--save-dir", str(save_dir), "--no-epoch-checkpoints"]
        return [*self.task_args(prior), "--arch", arch, *SIZES[arch], *TRAINING, *saving]

    def source(self, split: str) -> list[str]:
        return (self.place / f"{split}.src").read_text(encoding="utf-8").splitlines()


def make_translation_world(place: Path, world: World, shell: Shell) -> TranslationWorld:
    """Write the pairs, then run fairseq-preprocess and `llrnn prior`."""
    for split in SPLITS:
        lines = world.text(split)
        (place / f"{split}.tgt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (place / f"{split}.src").write_text("\n".join(map(source_of, lines)) + "\n", encoding="utf-8")
    made = TranslationWorld(place, world)
    shell.run(
        "fairseq-preprocess", "-s", "src", "-t", "tgt", "--trainpref", place / "train", "--validpref",
        place / "valid", "--testpref", place / "test", "--destdir", made.data,
    )  # fmt: skip
    features = ("--lexicon", world.place / "lexicon.tsv", "--top-words", 20)
    for name, options in {
        "prior": features,
        "separate": (*features, "--set", "input_features=POS", "--set", "input_top_words=30"),
        "softmax": ("--softmax",),
        "lexical": (
            *features, "--lexical-translation", made.data, "--set", "translations.learned=true",
            "translations.aligner=ibm1",
        ),
    }.items():
        shell.run("llrnn", "prior", "--dict", made.data / "dict.tgt.txt", *options, "--out", made.data / name)
    return made


def assert_resumed_is_never_stopped(
    shell: Shell, translation: TranslationWorld, place: Path, options: Sequence[object], prior: str = "prior",
    arch: str = "llrnn_lstm",
) -> Path:  # fmt: skip
    """Two epochs of a model at once, and with a stop after the first, end in the same weights: its checkpoint."""
    large = ("--max-tokens", 256)
    resumed_as_whole(shell, lambda at: [*translation.train_args(arch, prior, at), *large], place, *options)
    return place / "whole" / "checkpoint_last.pt"


def stock_args(data: Path, place: Path | None = None, arch: str = "transformer") -> list[object]:
    """Arguments of fairseq-train for a translation model of fairseq's own, src -> tgt, saved there once."""
    saving = [] if place is None else ["--save-dir", place, "--no-epoch-checkpoints"]
    sizes = SIZES["llrnn_transformer"] if arch == "transformer" else []
    return [
        data, "--task", "translation", "--source-lang", "src", "--target-lang", "tgt", "--cpu", "--arch", arch, *sizes,
        *TRAINING, "--criterion", "cross_entropy", *saving,
    ]  # fmt: skip


def train_stock_lm(shell: Shell, data: Path, place: Path, *options: object, width: int = 8) -> Path:
    """A Transformer language model of fairseq's own, after an update or so: its checkpoint."""
    shell.run(
        "fairseq-train", data, "--task", "language_modeling", "--arch", "transformer_lm", "--decoder-embed-dim", width,
        "--decoder-ffn-embed-dim", width, "--decoder-layers", 1, "--decoder-attention-heads", 1, "--cpu", *TRAINING,
        "--criterion", "cross_entropy", "--tokens-per-sample", 64, "--max-update", 1, "--save-dir", place,
        "--no-epoch-checkpoints", *options,
    )  # fmt: skip
    return place / "checkpoint_last.pt"


def assert_found_scores_are_the_model_s(setting: Setting, sample: dict[str, Any], beam: int = 3, **search: Any) -> None:
    """Whatever a search finds (that over candidates, if nothing is said) has the score that it has in training."""
    from fairseq.dataclass.configs import GenerationConfig

    torch.manual_seed(1)
    generator = setting.task.build_generator([setting.model], GenerationConfig(beam=beam, max_len_b=8, **search))
    found = setting.task.inference_step(generator, [setting.model], sample)
    eos, pad = setting.task.target_dictionary.eos(), setting.task.target_dictionary.pad()
    for rank in range(beam):
        rows = [hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in found]
        target = pad_sequence([h["tokens"] for h in rows], batch_first=True, padding_value=pad)
        previous = torch.nn.functional.pad(target, (1, 0), value=eos)[:, :-1]
        with torch.no_grad():
            _, extra = setting.model(**{**sample["net_input"], "prev_output_tokens": previous})
            log_prob = setting.model.decoder.head.target_log_probs(extra["batch"], target)
        for own, row, hypothesis in zip(log_prob, target, rows, strict=True):
            torch.testing.assert_close(own[row != pad], hypothesis["positional_scores"], rtol=1e-4, atol=1e-4)


def pairs(task: Any, lines: Sequence[str]) -> dict[str, Any]:
    """fairseq's batch of these sentences with their sources."""
    from fairseq.data import LanguagePairDataset

    encoded = [
        [dictionary.encode_line(line, add_if_not_exist=False, append_eos=True).long() for line in side]
        for dictionary, side in (
            (task.source_dictionary, [source_of(line) for line in lines]),
            (task.target_dictionary, lines),
        )
    ]
    sizes = [torch.tensor([len(row) for row in side]).numpy() for side in encoded]
    dataset = LanguagePairDataset(
        encoded[0], sizes[0], task.source_dictionary, encoded[1], sizes[1], task.target_dictionary, shuffle=False
    )
    return dataset.collater([dataset[i] for i in range(len(lines))])


def assert_steps_agree(setting: Setting, sample: dict[str, Any]) -> None:
    """Decoding word by word, hypotheses duplicated and dropped after every step, is the full forward pass."""
    from fairseq.sequence_generator import EnsembleModel

    net_input = sample["net_input"]
    previous = net_input.get("prev_output_tokens", net_input["src_tokens"])  # a language model reads its source
    rows = len(previous)
    with torch.no_grad():
        output = setting.model(**net_input)
        whole = setting.model.get_normalized_probs(output, log_probs=True)  # shape: (B, T, words and slots)
        torch.testing.assert_close(whole.exp().sum(-1), torch.ones(whole.shape[:2]), atol=1e-5, rtol=0)
        model = EnsembleModel([setting.model])
        encoder_outs = model.forward_encoder(net_input)
        states: list[dict[str, Any]] = [{}]
        sentence = torch.arange(rows)  # which sentence each hypothesis follows
        shuffle = torch.Generator().manual_seed(5)
        for t in range(previous.size(1)):
            if t:
                # another number each time: fairseq takes the same for what a beam search with one beam does
                order = torch.randint(len(sentence), (max(2, rows + 2 - t),), generator=shuffle)
                sentence = sentence[order]
                model.reorder_incremental_state(states, order)
                encoder_outs = model.reorder_encoder_out(encoder_outs, order)
            alive = previous[sentence, t].ne(setting.task.target_dictionary.pad())
            found, _ = model.forward_decoder(previous[sentence, : t + 1], encoder_outs, states)
            torch.testing.assert_close(found[alive], whole[sentence, t][alive], rtol=1e-4, atol=1e-4)
