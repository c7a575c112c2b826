"""`llrnn prior --pieces`: a real sentencepiece model from text to text, a split by hand for BPE, and every error."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from shell import Shell
from small_corpus import Corpus, Done, Llrnn
from tiny_world import EVERY_SENTENCE, MODEL, TRAINING, USER_DIR, every_word_once, sentences, write_lexicon

from fairseq_llrnn.prior.prior import Prior


def row(prior: Prior, piece: str) -> dict[str, float]:
    """φ of a piece."""
    return prior.output.features.row(int(prior.output.class_of[prior.symbols.index(piece)]))


# ---- sentencepiece, from text to text -------------------------------------------------------------------------------


@dataclass(frozen=True)
class PieceWorld:
    """The tiny language in sentencepiece's pieces: lexicon.tsv, train.pieces, data-bin with its prior."""

    place: Path
    processor: Any

    @property
    def data(self) -> Path:
        return self.place / "data-bin"

    def text(self, file: str) -> list[str]:
        return (self.place / file).read_text(encoding="utf-8").splitlines()

    def task_args(self) -> list[str]:
        return [
            str(self.data), "--user-dir", str(USER_DIR), "--task", "llrnn_language_modeling", "--prior",
            str(self.data / "prior"), "--cpu",
        ]  # fmt: skip

    def prior_args(self) -> list[object]:
        """What `llrnn prior` is told, save for --out."""
        return [
            "--dict", self.data / "dict.txt", "--pieces", "sentencepiece", "--count-text", self.place / "train.pieces",
            "--lexicon", self.place / "lexicon.tsv", "--suffixes", 2, "--shapes", "--top-words", 10,
        ]  # fmt: skip


@pytest.fixture(scope="module")
def pieces(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> PieceWorld:
    """A sentencepiece model of the tiny language, the language in its pieces, and its prior."""
    if importlib.util.find_spec("sentencepiece") is None:
        pytest.skip("sentencepiece is not installed (pip install -c constraints.txt sentencepiece)")
    import sentencepiece

    place = tmp_path_factory.mktemp("pieces")
    texts = {"train": sentences(96, 0) + every_word_once(), "valid": sentences(12, 1), "test": sentences(8, 2)}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts["train"]), model_prefix=str(place / "model"), vocab_size=70, num_threads=1,
        minloglevel=2,
    )  # fmt: skip
    processor = sentencepiece.SentencePieceProcessor(model_file=str(place / "model.model"))
    for split, lines in texts.items():
        (place / f"{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        encoded = (" ".join(processor.encode(line, out_type=str)) for line in lines)
        (place / f"{split}.pieces").write_text("\n".join(encoded) + "\n", encoding="utf-8")
    write_lexicon(place / "lexicon.tsv")
    world = PieceWorld(place, processor)
    shell.run(
        "fairseq-preprocess", "--only-source", "--trainpref", place / "train.pieces", "--validpref",
        place / "valid.pieces", "--testpref", place / "test.pieces", "--destdir", world.data,
    )  # fmt: skip
    shell.run("llrnn", "prior", *world.prior_args(), "--out", world.data / "prior")
    return world


def test_real_pieces_have_the_features_of_their_words(pieces: PieceWorld) -> None:
    prior = Prior.load(pieces.data / "prior")
    assert prior.settings["pieces"] == "sentencepiece"
    begins = [s for s in prior.symbols[4:] if s.startswith("▁")]
    inside = [s for s in prior.symbols[4:] if not s.startswith(("▁", "madeupword"))]
    assert begins and inside
    assert all(row(prior, piece).get("Piece:Begins") == 1 for piece in begins)
    assert all(row(prior, piece).get("Piece:Inside") == 1 for piece in inside)
    # a piece that is always a word has its features; `bien` has those of two analyses, `la` of one
    analyses = {"▁une": ["POS:DET", "Gender:Fem"], "▁la": ["POS:DET", "Gender:Fem"], "▁bien": ["POS:ADV", "POS:NOUN"]}
    encoded = [line.split() for line in pieces.text("train.pieces")]
    alone = {p for p in analyses if p in prior.symbols and all(_always_alone(p, line) for line in encoded)}
    assert alone, "the model of sentencepiece splits all of these words"
    for piece in alone:
        assert [row(prior, piece).get(name) for name in analyses[piece]] == [1.0, 1.0]
    # every value from the lexicon is in quarters
    values = {v for p in (*begins, *inside) for n, v in row(prior, p).items() if n.startswith(("POS:", "Gender:"))}
    assert values <= {0.25, 0.5, 0.75, 1.0} and len(values) > 1


def _always_alone(piece: str, line: list[str]) -> bool:
    """Whether each occurrence of a piece that begins words is followed by another beginning."""
    following = [*line[1:], "▁"]
    return all(after.startswith("▁") for part, after in zip(line, following, strict=True) if part == piece)


def test_show_tells_a_piece_and_its_shares(pieces: PieceWorld, llrnn: Llrnn) -> None:
    prior = Prior.load(pieces.data / "prior")
    piece = next(s for s in prior.symbols[4:] if s.startswith("▁") and s[1:] not in prior.symbols and len(s) > 2)
    done = llrnn("show", pieces.data / "prior", piece[1:])
    assert done.code == 0
    assert done.out.startswith(f"{piece}\n") and "Piece:Begins" in done.out
    assert f"{piece[1:]!r} is not in the dictionary of this prior; showing {piece!r}" in done.err
    assert "  pieces             sentencepiece\n" in llrnn("show", pieces.data / "prior").out
    assert "expected a piece of its dictionary, found 'zzz'" in llrnn("show", pieces.data / "prior", "zzz").error


def test_train_generate_and_type_words(pieces: PieceWorld, shell: Shell) -> None:
    saved = pieces.place / "trained"
    trained = shell.run(
        "fairseq-train", *pieces.task_args(), *MODEL, *TRAINING, "--max-epoch", 1, "--save-dir", saved,
        "--no-epoch-checkpoints",
    )  # fmt: skip
    assert trained.json_lines("valid")[-1]["valid_loss"] > 0
    search = [*pieces.task_args(), "--path", saved / "checkpoint_best.pt", "--beam", 3, "--max-len-b", 20]
    # Either option makes words again. Both together do it twice, and fairseq's second time takes all blanks away.
    model = ("--bpe", "sentencepiece", "--sentencepiece-model", pieces.place / "model.model")
    common = ("--gen-subset", "test", "--prefix-size", 2, "--sample-break-mode", "eos", *EVERY_SENTENCE)
    encoded = [line.split() for line in pieces.text("test.pieces")]
    made = [
        _hypotheses(shell.run("fairseq-generate", *search, *common, *options).out)
        for options in (model, ("--remove-bpe", "sentencepiece"))
    ]
    assert made[0] == made[1]
    for line, output in zip(encoded, made[0], strict=True):
        # the first two pieces of each sentence are given; what comes out begins like the sentence itself, in words
        assert output.startswith("".join(line[:2]).replace("▁", " ").strip())
        assert "▁" not in output
    typed = shell.run("fairseq-interactive", *search, *model, stdin="le chat voit\nla rose voit\n")
    assert [output.split()[:2] for output in _hypotheses(typed.out)] == [["le", "chat"], ["la", "rose"]]


def _hypotheses(out: str) -> list[str]:
    """The detokenised hypotheses by sentence."""
    rows = [line[2:].split("\t") for line in out.splitlines() if line.startswith("D-")]
    return [text for _, _, text in sorted(rows, key=lambda cells: int(cells[0]))]


# ---- BPE, split by hand ---------------------------------------------------------------------------------------------

BPE_TEXT = "le petit chat dort\nla petit@@ e chat@@ te dort\nle chat dort\n12 chat@@ s\n"
BPE_DICTIONARY = "chat 2\ndort 3\nle 2\npetit@@ 1\nchat@@ 2\n12 1\ne 1\nla 1\npetit 1\ns 1\nte 1\n"


def bpe(corpus: Corpus, llrnn: Llrnn, *options: object) -> Done:
    """Run `llrnn prior --pieces bpe` on the text above with the treebank of the corpus; later options win."""
    return llrnn(
        "prior", "--dict", corpus.write("dict.bpe.txt", BPE_DICTIONARY), "--pieces", "bpe", "--top-words", 0, "--out",
        corpus.out, *options,
    )  # fmt: skip


def test_bpe_split_by_hand(corpus: Corpus, llrnn: Llrnn) -> None:
    text = corpus.write("train.bpe", BPE_TEXT)
    done = bpe(corpus, llrnn, "--conllu", corpus.treebank, "--count-text", text, "--features", "POS,Gender", "--shapes")
    assert done.code == 0, done.err
    assert "note: 1 words of the text that the lexicon lacks" in done.err  # chats
    prior = Prior.load(corpus.out)
    assert row(prior, "chat") == {"NOTTOP": 1, "Piece:Ends": 1, "POS:NOUN": 1, "Gender:Masc": 1}
    assert row(prior, "petit@@") == {"NOTTOP": 1, "Piece:GoesOn": 1, "POS:ADJ": 1, "Gender:Fem": 1}
    # half of its occurrences are in chatte, the others in chats, which the treebank lacks
    assert row(prior, "chat@@") == {"NOTTOP": 1, "Piece:GoesOn": 1, "POS:NOUN": 0.5, "Gender:Fem": 0.5}
    assert row(prior, "12").keys() == {"NOTTOP", "Piece:Ends", "POS:NUM", "Shape:Number", "Shape:SmallNumber"}
    shown = llrnn("show", corpus.out, "chat@@")
    assert "POS:NOUN=0.5" in shown.out and "Piece:GoesOn" in shown.out
    assert json.loads(llrnn("show", corpus.out, "chat@@", "--json").out)["words"][0]["features"]["Gender:Fem"] == 0.5
    done = bpe(corpus, llrnn, "--conllu", corpus.treebank, "--count-text", text, "--set", "words.guess=on")
    assert "\nguessed: the features of 1 words\n" in done.out and "lexicon lacks" not in done.err


def test_without_lexicon_and_text_pieces_say_what_they_show(corpus: Corpus, llrnn: Llrnn) -> None:
    rules = corpus.write("patterns.toml", '[patterns]\nFeminine = "petite?|l[ae]"\n')
    assert bpe(corpus, llrnn, "--shapes", "--set", f"patterns={rules}").code == 0
    prior = Prior.load(corpus.out)
    assert row(prior, "petit@@") == {"NOTTOP": 1, "Piece:GoesOn": 1, "Pattern:Feminine": 1}
    assert row(prior, "12").keys() == {"NOTTOP", "Piece:Ends", "Shape:Number", "Shape:SmallNumber"}


# ---- errors ---------------------------------------------------------------------------------------------------------


def test_a_lexicon_or_suffixes_need_the_text(corpus: Corpus, llrnn: Llrnn) -> None:
    message = (
        "--pieces bpe: --conllu needs --count-text; add the training text in pieces, which shows the words of each "
        "piece, or leave --conllu and --suffixes out: a piece then has only the features of its own spelling"
    )
    assert bpe(corpus, llrnn, "--conllu", corpus.treebank, "--suffixes", 2).error == message
    alone = "leave --suffixes out: a piece then has only the features of its own spelling"
    assert bpe(corpus, llrnn, "--suffixes", 2).error.endswith(alone)
    values = corpus.write("values.tsv", "le\tSize:Small\t1\n")
    error = bpe(corpus, llrnn, "--set", f"words.values={values}").error
    assert "--set words.values needs --count-text; " in error and "or leave --set words.values out: " in error
    assert not corpus.out.exists()


def test_a_dictionary_or_a_text_of_another_kind(corpus: Corpus, llrnn: Llrnn) -> None:
    assert bpe(corpus, llrnn, "--pieces", "sentencepiece").error == (
        f"{corpus.place / 'dict.bpe.txt'}: expected pieces that begin with ▁ (--pieces sentencepiece), found none, but "
        "2 such as 'petit@@'; did you mean --pieces bpe?"
    )
    assert bpe(corpus, llrnn, "--dict", corpus.dictionary).error == (
        f"{corpus.dictionary}: expected pieces that end in @@ (--pieces bpe), found none in 12: 'le', 'la', 'chat'; "
        "give a text in pieces to fairseq-preprocess, or leave --pieces out"
    )
    words = corpus.write("words.txt", "le chat dort\n")
    assert "expected a text in pieces" in bpe(corpus, llrnn, "--conllu", corpus.treebank, "--count-text", words).error
    assert not corpus.out.exists()
