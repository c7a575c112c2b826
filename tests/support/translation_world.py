"""A tiny world for translation: the sentences of tiny_world, and the same sentences spelt backwards as their source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from shell import Shell
from tiny_world import EVERY_SENTENCE, SPLITS, USER_DIR, Setting, World, read_checkpoint

LSTM_SIZES = [
    "--encoder-embed-dim", "12", "--encoder-hidden-size", "8", "--decoder-embed-dim", "12", "--decoder-hidden-size",
    "16",
]  # fmt: skip
SIZES = {
    "llrnn_seq2seq": LSTM_SIZES,
    "llrnn_rnnsearch": LSTM_SIZES,
    "llrnn_lstm": [*LSTM_SIZES, "--decoder-layers", "2"],
    "llrnn_rctm": ["--encoder-embed-dim", "9", "--decoder-embed-dim", "12", "--decoder-hidden-size", "16"],
    "llrnn_encoder_decoder": [
        *LSTM_SIZES, "--maxout-units", "14", "--decoder-output-dim", "10",
    ],
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

    def train_args(
        self, arch: str = "llrnn_lstm", prior: str = "prior", save_dir: Path | None = None
    ) -> list[str]:
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
    shell: Shell, translation: TranslationWorld, place: Path, options: Sequence[str], prior: str = "prior",
    arch: str = "llrnn_lstm",
) -> Path:  # fmt: skip
    """Three epochs of a model at once, and with a stop after the first, end in the same weights: its checkpoint."""
    checkpoints = []
    for name, stops in (("whole", (3,)), ("parts", (1, 3))):
        for stop in stops:
            arguments = translation.train_args(arch, prior, save_dir=place / name)
            shell.run("fairseq-train", *arguments, *options, "--max-epoch", stop)
        checkpoints.append(place / name / "checkpoint_last.pt")
    whole, parts = (read_checkpoint(path)["model"] for path in checkpoints)
    assert all(torch.equal(value, parts[name]) for name, value in whole.items())
    return checkpoints[0]


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

    previous = sample["net_input"]["prev_output_tokens"]
    rows = len(previous)
    with torch.no_grad():
        output = setting.model(**sample["net_input"])
        whole = setting.model.get_normalized_probs(output, log_probs=True)  # shape: (B, T, words and slots)
        torch.testing.assert_close(whole.exp().sum(-1), torch.ones(whole.shape[:2]), atol=1e-5, rtol=0)
        model = EnsembleModel([setting.model])
        encoder_outs = model.forward_encoder(sample["net_input"])
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
