"""Models of a small treebank: texts and dictionary, one model end to end, figures read from fairseq's own output."""

import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from example_modules import EXAMPLES, load
from shell import Shell

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.prior.parts.guesses import GuessesPart
from fairseq_llrnn.prior.prior import Prior

texts, models = load(EXAMPLES / "small_treebanks", "small_texts", "small_treebanks")
SENTENCES = {
    "train": ["Le/DET chat/NOUN dort/VERB", "la/DET table/NOUN dort/VERB", "le/DET lit/NOUN mord/VERB"],
    "dev": ["Le/DET fer/NOUN mord/VERB"],
    "test": ["la/DET fable/NOUN sort/VERB", "le/DET chat/NOUN dort/VERB"],
}


@pytest.fixture(scope="module")
def ud(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a treebank."""
    folder = tmp_path_factory.mktemp("ud")
    for split, sentences in SENTENCES.items():
        rows = []
        for sentence in sentences:
            for number, word in enumerate(sentence.split(), 1):
                form, upos = word.split("/")
                rows.append(f"{number}\t{form}\t{form}\t{upos}\t_\t_\t0\t_\t_\t_\n")
            rows.append("\n")
        (folder / f"fr_tiny-ud-{split}.conllu.gz").write_bytes(gzip.compress("".join(rows).encode()))
    return folder


@pytest.fixture
def prepared(ud: Path, tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What small_texts.py makes, its commands and those of the models run as the other tests run them."""

    def execute(command: Sequence[str], log: Path) -> str:
        done = shell.run(command[0], *command[1:])
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"$ {' '.join(command)}\n{done.out}{done.err}")
        return done.out + done.err

    for module in (texts, models):
        monkeypatch.setattr(module, "execute", execute)
    texts.prepare(ud, tmp_path)
    return tmp_path


def test_words_of_other_texts_have_count_0(ud: Path) -> None:
    lines = {name: texts.sentences(texts.treebank(ud, split)) for name, split in texts.SPLITS.items()}
    assert lines["valid"] == ["le fer mord"]
    assert texts.dictionary(lines) == [
        *(("dort", 2), ("le", 2), ("chat", 1), ("la", 1), ("lit", 1), ("mord", 1), ("table", 1)),
        *(("fable", 0), ("fer", 0), ("sort", 0)),
    ]
    assert texts.table(lines).splitlines()[-1] == "| test | 2 | 6 | 6 | 33.3% |"
    with pytest.raises(DataError, match="named like training.conllu or training.conllu.gz, found none"):
        texts.treebank(ud, "training")


@pytest.mark.slow
def test_a_model_is_trained_measured_and_in_the_table(prepared: Path, ud: Path) -> None:
    arm = next(arm for arm in models.ARMS if arm.name == "guess")
    small = ("--decoder-embed-dim", "8", "--decoder-hidden-size", "8", "--decoder-layers", "1", "--max-epoch", "1")
    models.run(arm, 1, ud, prepared, small)
    prior = Prior.load(prepared / "models" / "guess-1" / "prior")
    part = prior.find(GuessesPart)
    assert part is not None and {"fable", "sort", "fer"} < {prior.symbols[i] for i in part.words}
    result = json.loads((prepared / "models" / "guess-1" / "result.json").read_text(encoding="utf-8"))
    # 6 words and 2 ends of sentences, two of the words unseen
    assert result["tokens"] == 8 and result["epochs"] == 1
    mean = (6 * result["seen"] + 2 * result["unseen"]) / 8
    assert math.log(result["perplexity"]) == pytest.approx(mean, abs=1e-6)
    models.run(arm, 1, ud, prepared, ("--no-such-option",))  # done already
    row = models.table(prepared).splitlines()[-1]
    assert row.startswith(f"| {arm.what} | 1 | ") and f" {result['perplexity']:,.0f} |" in row


def test_losses_of_seen_and_unseen_words() -> None:
    said = "x | INFO | fairseq_cli.eval_lm | 0 le [-1.000000]\tchat [-3.5]\t</s> [-0.500000]\nother [brackets]\n"
    found = models.losses(said, frozenset({"le"}))
    assert (found["seen"], found["unseen"], found["tokens"]) == (0.75, 3.5, 3)
    assert found["perplexity"] == pytest.approx(math.exp(5 / 3))
    with pytest.raises(DataError, match="expected log-probabilities"):
        models.losses("nothing", frozenset())


def test_the_validation_is_that_of_the_best_checkpoint() -> None:
    """Chosen by the loss, penalties included; of equal ones fairseq keeps the last."""
    line = "| INFO | valid | epoch 00{} | valid on 'valid' subset | loss {} | nll_loss 6 | nats 4 | ppl {} | wps 9"
    epochs = [(1, 7.5, 90), (2, 7.25, 80.5), (3, 7.25, 81.5), (4, 7.3, 79.5)]
    assert models.validated("\n".join(line.format(*epoch) for epoch in epochs)) == (4, 81.5)
    with pytest.raises(DataError, match="expected perplexities on the validation text from fairseq-train, found none"):
        models.validated("nothing")
