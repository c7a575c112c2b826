"""examples/discourse: word vectors against their formula, the public sets, logistic regression, tables, a whole run."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from example_modules import OF_RESEARCH, load, run_example

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install '.[transfer]'")
Split = pytest.importorskip("llrnn_research.discourse.data", reason="the system was deleted").Split
sets, transfer, vectors, tables, curves, shared_words, discourse_rows = load(
    OF_RESEARCH / "discourse", "sentence_sets", "transfer", "word_vectors", "discourse_tables", "learning_curves",
    "shared_words", "discourse_rows",
)  # fmt: skip


def random_split(rng: np.random.Generator, words: int) -> object:
    lengths = rng.integers(1, 9, 30)
    tokens = rng.integers(3, words + 4, lengths.sum()).astype(np.int32)  # some unknown, some beyond the dictionary
    return Split(tokens, lengths.cumsum().astype(np.int64), {})


@pytest.mark.parametrize("at_once", [7, 10_000])
def test_pairs_and_their_association_are_counted(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "AT_ONCE", at_once)
    words, window = 9, 2
    split = random_split(np.random.default_rng(1), words)
    expected = np.zeros((words, words))
    for number in range(len(split.ends)):
        sentence = split.sentence(number)
        for i, one in enumerate(sentence):
            for j, other in enumerate(sentence):
                if i != j and abs(i - j) <= window and 3 < one < words and 3 < other < words:
                    expected[one, other] += 1
    counts = vectors.pair_counts(split, words, window)
    np.testing.assert_array_equal(counts.toarray(), expected)
    contexts = expected.sum(0) ** 0.75
    found = vectors.association(counts).toarray()
    for one in range(words):
        for other in range(words):
            value = 0.0
            if expected[one, other] >= vectors.SEEN:
                chance = expected[one].sum() * contexts[other] / contexts.sum()
                value = max(0.0, math.log(expected[one, other] / chance))
            assert found[one, other] == pytest.approx(value, abs=1e-5)


def test_next_by_shared_words() -> None:
    """The context is 4 9, 5 5, 9; of the candidates, three share a word with it."""
    rows = [[4, 9], [5, 5], [9], [9, 8], [8], [7, 7], [4, 7], [5], [5, 8]]
    tokens = np.array([word for row in rows for word in row], dtype=np.int32)
    ends = np.cumsum([len(row) for row in rows])
    scores = [math.log(9 / 3) / math.sqrt(2), 0.0, 0.0, math.log(9 / 2) / math.sqrt(2), math.log(9 / 3)]
    for answer in range(5):
        split = Split(tokens, ends, {"next": np.array([[*range(8), answer]])})
        assert shared_words.accuracy(split) == (answer == np.argmax(scores))


def write_sets(folder: Path) -> None:
    rng = np.random.default_rng(3)
    lines = [f"{label} {'good' if label else 'bad'} thing{i % 7} ." for i, label in enumerate(rng.integers(0, 2, 300))]
    (folder / "custrev.all").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for split, many in (("train", 40), ("test", 20)):
        (folder / f"TREC.{split}.all").write_bytes("\n".join(lines[:many]).replace("thing1", "é").encode("latin-1"))
    for split in ("train", "valid", "test"):
        pairs = "\n".join(f"first {i}\tsecond {i}" for i in range(40))
        (folder / f"discoeval-bso-wiki.{split}.txt.gz").write_bytes(gzip.compress(pairs.encode()))


@pytest.mark.parametrize(("name", "parts"), [("CR", 1), ("TREC", 2), ("BSO wiki", 3)])
def test_regression_finds_what_words_tell(name: str, parts: int, tmp_path: Path) -> None:
    write_sets(tmp_path)
    data = sets.read_set(name, tmp_path)
    assert len(data.ends) == parts and data.ends[-1] == len(data.texts) == len(data.labels)
    assert 0.25 < np.mean(data.labels) < 0.75
    assert transfer.accuracy(data, None, True) == 1.0
    chance = np.random.default_rng(4).normal(size=(len(data.texts), 5))
    assert transfer.accuracy(data, chance, False) < 0.85
    answers = np.array(data.labels, dtype=float)[:, None]
    assert transfer.accuracy(data, np.hstack([chance, answers]), False) > 0.9


def test_each_fold_chooses_by_its_own_training_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is chosen by has nothing of the fold that is tested."""
    write_sets(tmp_path)
    asked: list[tuple[np.ndarray, np.ndarray, float]] = []

    def right(*args: object) -> int:
        asked.append((args[4], args[5], args[6]))  # type: ignore[arg-type]
        return 0

    monkeypatch.setattr(transfer, "_right", right)
    transfer.accuracy(sets.read_set("CR", tmp_path), None, True)
    each = len(transfer.WEIGHTS) + 1
    assert len(asked) == transfer.FOLDS * each
    for begin in range(0, len(asked), each):
        *choices, (train, test, _) = asked[begin : begin + each]
        for fit, held_out, _ in choices:
            assert set(fit) | set(held_out) == set(train) and not {*fit, *held_out} & set(test)


@pytest.mark.slow
def test_the_whole_run_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second time, all is there; other settings are refused. Rows of spelling are like the others."""
    few = {"BUDGET": "1", "ROWS": "cbow-all bigru-order spelling-all order-then-next"}
    first = run_example(OF_RESEARCH / "discourse/run.sh", tmp_path / "out", variables=few)
    assert "cbow-all: order " in first.out and "words on CR: " in first.out
    again = run_example(OF_RESEARCH / "discourse/run.sh", tmp_path / "out", variables=few)
    assert "on CR" not in again.out and again.out.endswith((tmp_path / "out" / "tables.md").read_text(encoding="utf-8"))
    assert "NEXT by shared words: " in first.out
    for name in ("cbow-all", "bigru-order+vectors", "spelling-all+words", "vectors", "words"):
        assert f"\n| {name} | " in again.out
    rows = ("bigru-order", "order-then-next", "--out", tmp_path / "out" / "rows")
    said = run_example(OF_RESEARCH / "discourse/learning_curves.py", *rows).out
    assert "| bigru-order | ORDER | " in said and "| order-then-next | NEXT | " in said
    other = ("train", "order-then-next", "--data", tmp_path / "out" / "data", "--out", tmp_path / "other")
    missing = run_example(OF_RESEARCH / "discourse/discourse_rows.py", *other, code=2)
    assert "order-then-next: expected a finished row bigru-order, found none; train it first" in missing.err
    place = ("--data", str(tmp_path / "out" / "data"), "--out", str(tmp_path / "out" / "rows"))
    monkeypatch.setattr("sys.argv", ["discourse_rows.py", "train", "cbow-all", *place, "--size", "32"])
    assert discourse_rows.main() == 2
    assert "cbow-all: expected --budget 3600.0, found results of --budget 1.0; give" in capsys.readouterr().err
    texts = run_example(
        OF_RESEARCH / "discourse/run.sh", tmp_path / "out", tmp_path, "fr", tmp_path, variables=few, code=2
    ).err
    assert "run.sh: error: " in texts and "LANGUAGE=fr, found results of TEXTS=" in texts
    wrong = run_example(OF_RESEARCH / "discourse/discourse_rows.py", "train", "gru", "--out", tmp_path / "out", code=2)
    assert "discourse_rows.py: error: gru: expected one of bigru-order" in wrong.err
