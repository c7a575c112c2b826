"""Write the corpus into a folder, every file under a temporary name first."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import write_lines
from toy_french.corpus import Corpus, Sentence, text_of
from toy_french.words import Word


def write_corpus(corpus: Corpus, folder: Path) -> None:
    """Write {train,valid,test}.{conllu,txt}, lexicon.tsv, vocabulary.txt and probes.jsonl."""
    with writing_into(folder):
        for split, sentences in corpus.splits.items():
            write_lines(folder / f"{split}.conllu", _conllu(split, sentences))
            write_lines(folder / f"{split}.txt", (text_of(sentence) for sentence in sentences))
        write_lines(folder / "lexicon.tsv", lexicon_rows(corpus.stock.words))
        write_lines(folder / "vocabulary.txt", vocabulary_rows(corpus.stock.words, corpus.counts))
        write_lines(folder / "probes.jsonl", (json.dumps(asdict(p), ensure_ascii=False) for p in corpus.probes))


@contextmanager
def writing_into(folder: Path) -> Iterator[None]:
    """Create the folder. Errors of it or its files become one DataError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise DataError(
            f"cannot write the corpus into {folder}: {error.strerror or error}; "
            "give --out a folder that can be written to, on a disk with some megabytes free"
        ) from error


def _conllu(split: str, sentences: list[Sentence]) -> Iterator[str]:
    for number, sentence in enumerate(sentences, start=1):
        yield f"# sent_id = {split}-{number}"
        yield f"# text = {text_of(sentence)}"
        for place, token in enumerate(sentence, start=1):
            word = token.word
            columns = (
                place,
                word.form,
                word.lemma,
                word.upos,
                "_",
                word.feats or "_",
                token.head,
                token.deprel,
            )
            yield "\t".join(map(str, (*columns, "_", "_")))
        yield ""


def lexicon_rows(words: Iterable[Word]) -> Iterator[str]:
    """Return form, lemma, UPOS, FEATS: every analysis of the whole language, unseen words included."""
    for word in words:
        yield "\t".join((word.form, word.lemma, word.upos, word.feats or "_"))


def vocabulary_rows(words: Iterable[Word], counts: Counter[str]) -> Iterator[str]:
    """Return a fairseq dictionary for --srcdict or --tgtdict: every form with its count in train, 0 if unseen."""
    forms = {word.form for word in words}
    for form in sorted(forms, key=lambda form: (-counts[form], form)):
        yield f"{form} {counts[form]}"
