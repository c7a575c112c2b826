"""Where the files of a treebank are: the folder of a release of Universal Dependencies."""

from pathlib import Path

from fairseq_llrnn.errors import DataError


def treebank(folder: Path, split: str) -> Path:
    """The one file of `folder` that holds `split`, plain or gzip, also under UD's long names (fr_gsd-ud-dev.conllu).

    Raises:
        DataError: none, or several.
    """
    found = [path for ending in (".conllu", ".conllu.gz") for path in sorted(folder.glob(f"*{split}{ending}"))]
    if len(found) != 1:
        listed = ", ".join(path.name for path in found) or "none"
        raise DataError(
            f"{folder}: expected one file named like {split}.conllu or {split}.conllu.gz, found {listed}; give the "
            "folder of one treebank"
        )
    return found[0]
