"""The models of `llrnn rescore`: their options, their data, and checks that they suit the lists."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairseq_llrnn.cli.model_options import PARTS, USER_CODE, add_places, need_fairseq, places_in, value_of
from fairseq_llrnn.errors import DataError, OptionError, check_unused_options
from fairseq_llrnn.systems.reranking.rescoring import Job, Model

# name in lists and weights: the prefix of the model's options, and its kind
MODELS = {
    "model": ("", "translation or language model"),
    "reverse": ("reverse-", "translation model, target to source"),
    "lm": ("lm-", "language model"),
}


def add_models(group: "argparse._ArgumentGroup") -> None:
    for prefix, kind in MODELS.values():
        group.add_argument(f"--{prefix}path", required=not prefix, metavar="FILE", help=f"checkpoint of a {kind}")
    for prefix, _ in MODELS.values():
        add_places(group, prefix, f" of --{prefix}path", translates=prefix != MODELS["lm"][0])


def check_models(args: argparse.Namespace) -> None:
    """Raise OptionError for options of a model without its path."""
    for prefix, _ in MODELS.values():
        if value_of(args, prefix, "path") is None:
            parts = {f"{prefix}{part}": value_of(args, prefix, part) for part in PARTS}
            check_unused_options(parts, f"belongs to --{prefix}path, which is missing; give both or none")


def chosen(args: argparse.Namespace) -> dict[str, str]:
    """Return the checkpoints by model name."""
    paths = {name: value_of(args, prefix, "path") for name, (prefix, _) in MODELS.items()}
    return {name: path for name, path in paths.items() if path is not None}


def load_models(args: argparse.Namespace, jobs: Sequence[Job]) -> dict[str, Model]:
    """Return the models by name, checked against each other and against the lists."""
    need_fairseq()
    from fairseq_llrnn.plugin.scoring.sentences import load_scorer

    models = {}
    languages = None
    for name, path in chosen(args).items():
        prefix, _ = MODELS[name]
        scorer = load_scorer(path, args.max_tokens, places_in(args, prefix))
        option = f"--{prefix}path {path}"
        if name == "lm" and scorer.languages is not None:
            raise DataError(f"{option}: expected a language model, found a translation model; give it as --path")
        if name == "reverse" and scorer.languages is None:
            raise DataError(f"{option}: expected a translation model, found a language model; give it as --lm-path")
        if scorer.languages is not None and scorer.languages == languages:
            source, target = scorer.languages
            raise DataError(
                f"{option}: expected a model of the other direction, found one from {source} to {target}, like --path; "
                "give one that was trained with source and target exchanged"
            )
        if scorer.languages is not None:
            _need_sources(f"{option}: a translation model", jobs)
        languages = languages or scorer.languages
        models[name] = Model(scorer, backwards=name == "reverse")
    return models


def _need_sources(who: str, jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.source is None and not job.lists.has_sources:
            raise OptionError(f"{who} needs the source, which {job.lists.path} lacks; give --source FILE")


def files_of(args: argparse.Namespace, models: Mapping[str, Model]) -> dict[str, Path]:
    """Return the files on which the models' scores depend, by readable names."""
    from fairseq_llrnn.plugin.compat.loading import checkpoint_file

    files = {}
    for name, path in chosen(args).items():
        prefix, _ = MODELS[name]
        option = f"--{prefix}path"
        files[option] = Path(checkpoint_file(path))
        files |= {f"{file.name} of {option}": file for file in models[name].scorer.dictionaries}
        for code in USER_CODE:
            of_code = code.files(value_of(args, prefix, code.OPTION))
            files |= {f"{part} of {option}": file for part, file in of_code.items()}
    return files
