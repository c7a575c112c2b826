"""The stages of the experiment on Multi30k. Each runs commands of multi30k_recipes.py, skips finished ones, and logs
them.

All commands run in OUT, so that checkpoints have data and priors by paths relative to it.
"""

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import multi30k_recipes as recipes
from multi30k_pairs import Pair
from multi30k_recipes import TEXTS, Recipe

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.files.atomic_write import whole_file, write_lines
from fairseq_llrnn.files.text_lines import iter_lines

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Of a log: commands, size, validations, time.
KEY_LINE = re.compile(r"\$ |.*\| (num\. shared model params|INFO \| valid \||done training)")
HYPOTHESIS = re.compile(r"D-(\d+)\t[^\t]*\t(.*)")
# A softmax over the vocabulary takes and returns hundreds of MB a step; without these settings glibc gives them back to
# the kernel each time.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    # fairseq's own models read their checkpoints, made here, only so; ours are read safely all the same
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
}
# Two systems more of one that replaces <unk>: by any source word, or by those that its dictionary lacks.
COPYING = {"+copy": [], "+copy-unknown": ["--unknown-to", "{data}/dict.en.txt"]}


def execute(out: Path, command: Sequence[str], log: str, result: str | None = None) -> None:
    """Run a command in OUT. Append it and its messages to `log`, and write its output to the file `result`, if given.

    Raises DataError if it fails; then there is no result.
    """
    said = out / log
    said.parent.mkdir(parents=True, exist_ok=True)
    # the commands of this very installation, whether or not it is activated
    program = sys.executable if command[0] == "python" else str(Path(sys.executable).parent / command[0])
    temporary = said if result is None else out / f"{result}.tmp"
    with said.open("a", encoding="utf-8") as errors, temporary.open("a" if result is None else "w") as printed:
        errors.write(f"$ {shlex.join(command)}\n")
        errors.flush()
        finished = subprocess.run(
            [program, *command[1:]], cwd=out, env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=printed,
            stderr=errors, check=False,
        )  # fmt: skip
    if finished.returncode:
        last = " / ".join(said.read_text(encoding="utf-8").splitlines()[-2:])
        raise DataError(f"{command[0]} failed with status {finished.returncode}; {said} ends with: {last}")
    if result is not None:
        os.replace(temporary, out / result)


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold a lock inside the block. The system frees it when the process ends. Raises OptionError."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OptionError(f"{lock.with_suffix('')}: another process is working on it") from None
        yield


def is_made(result: Path, sources: Iterable[Path]) -> bool:
    """Return whether there is a result that is not older than its sources."""
    if not result.exists():
        return False
    return all(source.stat().st_mtime <= result.stat().st_mtime for source in sources if source.exists())


def lines_of(path: Path) -> list[str]:
    return [line for _, line in iter_lines(path)]


def prepare(out: Path, folders: Sequence[Path], pair: Pair, lexicons: Sequence[Path]) -> None:
    """Write texts, pieces, data folders and priors."""
    if (out / "text").exists() and (begun := Pair.of(out).target) != pair.target:
        raise OptionError(f"{out}: expected texts of {pair.target}, found those of {begun}; use another --out")
    pair.write(out)
    for folder, kind in (("text", "tok"), ("raw", "raw")):
        (out / folder).mkdir(parents=True, exist_ok=True)
        for split in recipes.SPLITS:
            for language in pair.languages:
                _unpack(folders, f"{split}.{kind}.{language}.gz", out / folder / f"{split}.{language}")
    for lexicon in lexicons:
        if not (out / lexicon.name).exists():
            if not lexicon.is_file():
                raise OptionError(
                    f"{lexicon}: expected a lexicon (form, lemma, UPOS, FEATS) or a treebank, found none; see --lexicon"
                )
            shutil.copyfile(lexicon, out / lexicon.name)
    if not (out / "piecetext").exists():
        _cut_into_pieces(out, pair)
    dictionary = recipes.build_dictionary(pair)
    if not (out / dictionary[-1]).exists():
        print(f"{dictionary[-1]}: llrnn dictionary", flush=True)
        execute(out, dictionary, "prepare.log")
    for folder in recipes.DATA:
        if not (out / folder).exists():
            print(f"{folder}: fairseq-preprocess", flush=True)
            _make_folder(out, folder, recipes.preprocess(pair, folder, f"{folder}.tmp"))
    for table in recipes.build_tables(pair):
        if not (out / table[-1]).exists():
            print(f"{table[-1]}: llrnn lexicon", flush=True)
            execute(out, table, "prepare.log")
    for prior in recipes.PRIORS:
        if not (out / prior).exists():
            print(f"{prior}: llrnn prior", flush=True)
            execute(out, recipes.build_prior(pair, prior), "prepare.log")


def _unpack(folders: Sequence[Path], name: str, target: Path) -> None:
    if target.exists():
        return
    source = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if source is None:
        raise OptionError(
            f"{folders[-1] / name}: expected a file of Multi30k, found none; --data names the folders that hold them"
        )
    write_lines(target, (line for _, line in iter_lines(source)))


def _cut_into_pieces(out: Path, pair: Pair) -> None:
    try:
        import sentencepiece
    except ImportError:
        raise OptionError(
            "expected the package sentencepiece, found none; pip install '.[pieces]'"
        ) from None
    if not (out / "bpe.model").exists():
        print("bpe.model: sentencepiece", flush=True)
        texts = [str(out / "text" / f"train.{language}") for language in pair.languages]
        sentencepiece.SentencePieceTrainer.train(
            input=texts, model_prefix=str(out / "bpe.tmp"), minloglevel=2, **recipes.PIECES
        )
        os.replace(out / "bpe.tmp.vocab", out / "bpe.vocab")
        os.replace(out / "bpe.tmp.model", out / "bpe.model")
    model = sentencepiece.SentencePieceProcessor(model_file=str(out / "bpe.model"))
    folder = out / "piecetext.tmp"
    folder.mkdir(exist_ok=True)
    for split in recipes.SPLITS:
        for language in pair.languages:
            with whole_file(folder / f"{split}.{language}") as file:
                for line in lines_of(out / "text" / f"{split}.{language}"):
                    file.write(" ".join(model.encode(line, out_type=str)) + "\n")
    os.replace(folder, out / "piecetext")


def _make_folder(out: Path, folder: str, command: Sequence[str]) -> None:
    """Run a command that writes into FOLDER.tmp, and rename that folder."""
    shutil.rmtree(out / f"{folder}.tmp", ignore_errors=True)
    execute(out, command, "prepare.log")
    os.replace(out / f"{folder}.tmp", out / folder)


def train(out: Path, name: str, seed: int, extra: Sequence[str], gpu: bool) -> None:
    """Train a model, or resume its training."""
    command = [*recipes.train(Pair.of(out), recipes.find(name), name, seed, gpu), *extra]
    folder = out / "models" / name
    with alone(folder.with_suffix(".lock")):
        said = folder / "command.txt"
        settings = shlex.join(word for word in command if word != recipes.USER_DIR)
        begun = said.read_text(encoding="utf-8") if said.exists() else "?" if any(folder.glob("*.pt")) else None
        if begun not in (None, settings):
            raise DataError(
                f"{folder}: expected a training by `{settings}`, found one by `{begun}`; move it away to train again"
            )
        folder.mkdir(exist_ok=True)
        said.write_text(settings, encoding="utf-8")
        if (folder / "trained").exists():
            print(f"{name}: trained already")
            return
        print(f"{name}: training; see {folder / 'train.log'}", flush=True)
        execute(out, command, f"models/{name}/train.log")
        (folder / "trained").touch()  # fairseq cannot tell a finished training from an interrupted one


def average(out: Path, name: str) -> str:
    """Return the path of the mean of a model's last five epochs, which is computed if it is missing or outdated."""
    path = f"results/{name}/average.pt"
    folder = out / "models" / name
    if not is_made(out / path, folder.glob("checkpoint*.pt")):
        if not folder.is_dir():
            raise OptionError(f"{folder}: expected a folder of checkpoints, found none; `train` makes it")
        script = str(ROOT / "scripts" / "average_checkpoints.py")
        command = ["python", script, f"models/{name}", "--last", "5", "--out", path]
        execute(out, command, f"results/{name}/log")
        print(f"{name}: {path}, the mean of the last five epochs", flush=True)
    return path


def translate(
    out: Path, name: str, which: str, recipe: Recipe, path: str, extra: Sequence[str], gpu: bool = False
) -> None:
    """Write the 1-best of a set: results/NAME/SET.out, fairseq's output, and SET.fr (or .cs …), its sentences."""
    place, target, told = f"results/{name}/{which}", Pair.of(out).target, f"{name}: translating {which}"
    source = out / f"{TEXTS[which]}.en"
    if not source.exists():
        raise OptionError(f"{source}: expected a text, found none; the stages prepare and copy make them")
    _write_search(out, f"{place}.out", [*_search(out, which, recipe, path), *extra], path, told, gpu)
    _write_translations(out, place, target, len(lines_of(source)))
    if recipe.replaces_unknown:
        for ending, options in COPYING.items():
            (out / f"results/{name}{ending}").mkdir(exist_ok=True)
            command = ["python", str(HERE / "replace_unknown.py"), "--generated", f"{place}.out"]
            command += ["--source", str(source), "--out", f"results/{name}{ending}/{which}.{target}"]
            command += [option.format(data=recipe.data) for option in options]
            execute(out, command, f"results/{name}/log")


def _search(out: Path, which: str, recipe: Recipe, path: str) -> list[str]:
    """Return the command that translates a set; our models read the text, which has the strings of unknown words."""
    pair = Pair.of(out)
    if recipe.prior is not None or (which == "copy" and not recipe.replaces_unknown):
        return recipes.interactive(pair, recipe, path, f"{TEXTS[which]}.en")
    if which != "copy":
        return recipes.generate(pair, recipe, path, which)
    folder = f"{recipe.data}-copy"  # fairseq-interactive does not print attention
    if not (out / folder).exists():
        _make_folder(out, folder, recipes.binarise(pair, recipe.data, TEXTS[which], f"{folder}.tmp"))
    return recipes.generate(pair, recipe, path, "test", folder)


def _write_translations(out: Path, place: str, target: str, count: int) -> None:
    found: dict[int, str] = {}
    for _, line in iter_lines(out / f"{place}.out"):
        if match := HYPOTHESIS.fullmatch(line):
            found.setdefault(int(match[1]), match[2])
    if found.keys() != set(range(count)):
        raise DataError(
            f"{out / place}.out: expected translations of {count:,} sentences, found {len(found):,} (or others); see "
            "it and its log for the cause, and delete it"
        )
    write_lines(out / f"{place}.{target}", (found[n] for n in range(count)))


def list_best(
    out: Path, name: str, which: str, recipe: Recipe, path: str, count: int, extra: Sequence[str], gpu: bool = False
) -> None:
    """Write the n-best list of a set: results/NAME/SET.nbest."""
    place = f"results/{name}/{which}.nbest"
    command = recipes.generate_nbest(Pair.of(out), recipe, path, which, count)
    _write_search(out, place, [*command, *extra], path, f"{name}: {count}-best list of {which}", gpu)


def _write_search(out: Path, place: str, command: list[str], path: str, told: str, gpu: bool) -> None:
    """Write a search's output to PLACE, and its command to PLACE.command. Skipped if it is finished.

    Raises DataError if it was made by another command.
    """
    said = out / f"{place}.command"
    settings = shlex.join(word for word in command if word not in (recipes.USER_DIR, "--cpu"))
    if is_made(out / place, (out / one for one in path.split(":"))):  # several checkpoints have `:` between them
        begun = said.read_text(encoding="utf-8") if said.exists() else settings
        if begun != settings:
            raise DataError(
                f"{out / place}: expected a search by `{settings}`, found one by `{begun}`; delete it to search again"
            )
        return
    print(told, flush=True)
    said.unlink(missing_ok=True)
    execute(out, [word for word in command if not gpu or word != "--cpu"], str(Path(place).parent / "log"), place)
    said.write_text(settings, encoding="utf-8")


def keep(out: Path, name: str, docs: Path) -> None:
    """Write what is needed to check the figures to DOCS/NAME/: the logs' key lines, translations and reports."""
    logs = (("train.log", out / "models" / name / "train.log"), ("commands", out / "results" / name / "log"))
    endings = Pair.of(out).target, "txt"
    results = [path for ending in endings for path in sorted((out / "results" / name).glob(f"*.{ending}"))]
    if not results:
        raise OptionError(f"{out / 'results' / name}: expected translations, found none; `translate` makes them")
    (docs / name).mkdir(parents=True, exist_ok=True)
    here = {recipes.USER_DIR: "fairseq_llrnn", f"{out}/": "", f"{ROOT}/": ""}
    for kept, path in logs:
        if path.exists():
            with whole_file(docs / name / kept) as file:
                for line in filter(KEY_LINE.match, lines_of(path)):
                    for place, short in here.items():
                        line = line.replace(place, short)
                    file.write(f"{line}\n")
    for path in results:
        shutil.copyfile(path, docs / name / path.name)
