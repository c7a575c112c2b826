"""Evidence over pieces through the commands: what training reads, what a search writes, what is scored."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from evidence_world import KNOWN, MAPPED, NOT_OFFERED, UNKNOWN, EvidenceWorld
from piece_evidence_world import POST_PROCESS, in_pieces, make_piece_evidence_world, words_of
from shell import Result, Shell
from tiny_world import EVERY_SENTENCE, World, build

from fairseq_llrnn.plugin.scoring.sentences import load_scorer

ITEMS = {*KNOWN, *UNKNOWN, *" ".join(MAPPED.values()).split()}


@dataclass(frozen=True)
class Pieces:
    """A world in pieces, and a model of it."""

    convention: str
    world: EvidenceWorld
    shell: Shell

    @property
    def checkpoint(self) -> Path:
        return self.world.place / "model" / "checkpoint_last.pt"

    def train(self, save_dir: Path | None, *options: object) -> Result:
        """A Transformer, and an LSTM whose searches do not count strings."""
        arch = "llrnn_transformer" if self.convention == "sentencepiece" else "llrnn_lstm"
        return self.shell.run(
            "fairseq-train", *self.world.train_args(arch, "lexical", save_dir, raw=True), "--max-tokens", 512,
            *self.task_options, *options,
        )  # fmt: skip

    @property
    def task_options(self) -> list[str]:
        return [] if self.convention == "sentencepiece" else ["--evidence-freely"]

    @functools.cache  # noqa: B019, several tests ask the same of a few worlds
    def generate(self, *options: object) -> Result:
        return self.shell.run(
            "fairseq-generate", *self.world.task_args("lexical", raw=True), "--path", self.checkpoint, "--gen-subset",
            "test", "--max-tokens", 600, "--max-len-b", 30, "--num-workers", 0, *EVERY_SENTENCE, *self.task_options,
            *options,
        )  # fmt: skip

    def text(self, language: str) -> list[list[str]]:
        """The words of the test set."""
        return [words_of(line, self.convention) for line in self.world.text("test", language)]


@pytest.fixture(scope="module", params=["sentencepiece", "bpe"])
def pieces(
    request: pytest.FixtureRequest, shell: Shell, world: World, tmp_path_factory: pytest.TempPathFactory
) -> Pieces:
    place = tmp_path_factory.mktemp("pieces")
    made = Pieces(request.param, make_piece_evidence_world(place, world, shell, request.param), shell)
    made.train(
        place / "model", "--max-epoch", 5, "--save-interval", 5, "--invented-evidence", 0.4, "--disable-validation"
    )
    return made


def scores(result: Result) -> dict[int, float]:
    return {number: some[0][0] for number, some in result.hypotheses().items()}


def items(words: Sequence[str]) -> set[str]:
    return {word for word in words if word in ITEMS}


def test_a_slot_is_one_token_and_the_text_is_whole_again(pieces: Pieces) -> None:
    """Every string that is written is one of the source's, also where the dictionary lacks a character of it."""
    plain = pieces.generate()
    whole = pieces.generate("--post-process", POST_PROCESS[pieces.convention], "--scoring", "sacrebleu")
    sources, written = pieces.text("src"), set[str]()
    for number, text in whole.best().items():
        words = text.split()
        assert words == words_of(plain.best()[number], pieces.convention)
        offered = {word for one in sources[number] for word in MAPPED.get(one, one).split()}
        assert items(words) & set(UNKNOWN) <= offered
        written |= items(words)
    assert len(written & set(UNKNOWN)) >= 2 and "BLEU" in whole.out
    # a string of several pieces is one token of the target, in what is forced, too
    targets = {number: text.split() for number, [text] in plain.printed("T").items()}
    mark = "▁" if pieces.convention == "sentencepiece" else ""
    some = [token for tokens in targets.values() for token in tokens if token in {f"{mark}{word}" for word in UNKNOWN}]
    assert set(some) >= {f"{mark}4711", f"{mark}Karim"}
    assert {n: t.split() for n, [t] in whole.printed("T").items()} == dict(enumerate(pieces.text("tgt")))


def test_training_has_the_text_beside_targets_with_slots(pieces: Pieces) -> None:
    """By which the background leaves out what it knows of a sentence."""
    task = build(pieces.world.train_args("llrnn_lstm", "lexical", raw=True)).task
    task.load_dataset("train", combine=True)
    data, lines = task.dataset("train"), pieces.world.text("train", "tgt")
    batch, pad = data.collater([data[i] for i in range(len(data))]), task.target_dictionary.pad()
    shorter = 0
    for number, text, target in zip(batch["id"].tolist(), batch["net_input"]["text"], batch["target"], strict=True):
        assert [task.target_dictionary[token] for token in text[text != pad]] == ["</s>", *lines[number].split()]
        shorter += int((target != pad).sum()) < int((text != pad).sum())
    assert shorter > 20


def test_typed_text_is_translated_as_files_are(pieces: Pieces) -> None:
    typed = pieces.shell.run(
        "fairseq-interactive", *pieces.world.task_args("lexical"), "--path", pieces.checkpoint, "--max-len-b", 30,
        "--num-workers", 0, "--buffer-size", 30, "--batch-size", 4, *pieces.task_options,
        stdin="\n".join(pieces.world.text("test", "src")) + "\n",
    )  # fmt: skip
    assert scores(typed) == pytest.approx(scores(pieces.generate()), abs=1e-3)


def test_references_have_one_score_everywhere(pieces: Pieces) -> None:
    """--score-reference, a forced search, the criterion, a scorer of sentences: a slot is one token for all of them."""
    reference = pieces.generate("--score-reference")
    forced = pieces.generate("--prefix-size", 60, "--evidence-freely")
    assert scores(forced) == pytest.approx(scores(reference), abs=1e-3)
    lengths = {number: len(text.split()) + 1 for number, [text] in reference.printed("T").items()}
    validated = pieces.shell.run(
        "fairseq-validate", *pieces.world.task_args("lexical", raw=True), "--path", pieces.checkpoint,
        "--valid-subset", "test", "--max-tokens", 400, "--log-format", "json", "--num-workers", 0, *EVERY_SENTENCE,
        *pieces.task_options,
    ).json_lines("test")[-1]  # fmt: skip
    total = sum(score * lengths[number] for number, score in scores(reference).items())
    assert -total / sum(lengths.values()) == pytest.approx(validated["test_nll_loss"], abs=2e-3)
    sources, targets = pieces.world.text("test", "src"), pieces.world.text("test", "tgt")
    found = load_scorer(str(pieces.checkpoint), 400).score(sources, targets)
    assert found == pytest.approx([reference.nats()[number] for number in range(len(targets))], abs=2e-3)


def test_the_words_that_no_slot_offers_are_written_in_pieces(pieces: Pieces) -> None:
    printed = pieces.generate("--score-reference").printed("T")
    targets = [words_of(text, pieces.convention) for [text] in printed.values()]
    number = next(i for i, words in enumerate(targets) if NOT_OFFERED in words)
    assert NOT_OFFERED not in pieces.generate().printed("T")[number][0].split()


def test_explanations_name_whole_strings(pieces: Pieces) -> None:
    source = in_pieces("el tahc 4711 Karim", pieces.convention)
    explained = pieces.shell.run(
        "llrnn", "explain", "--path", pieces.checkpoint, "--source", source,
        in_pieces("le chat 4711 Karim", pieces.convention),
    )  # fmt: skip
    mark = "▁" if pieces.convention == "sentencepiece" else ""
    assert f"{mark}4711" in explained.out and "numbers" in explained.out and "names" in explained.out
    own = pieces.shell.run("llrnn", "explain", "--path", pieces.checkpoint, "--source", source)
    assert "translation (beam 5)" in own.out
