"""Write stored.zip of what make.sh made, with the values that v0.2.0-rc1 computes: python record.py FOLDER."""

import argparse
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import numpy as np
import torch
from stored_priors import facts, texts_of

from fairseq_llrnn.plugin.compat.loading import Places
from fairseq_llrnn.plugin.models.frozen_lm import load_general_model
from fairseq_llrnn.plugin.scoring.sentences import load_scorer
from fairseq_llrnn.plugin.scoring.text_bits import TextScorer
from fairseq_llrnn.prior.prior import Prior


def is_namespace(options: object) -> bool:
    return isinstance(options, argparse.Namespace)


def scores(checkpoint: Path, place: Path) -> object:
    """−log p in nats of each sentence; labels as `llrnn classify` prints them; vectors of `llrnn encode`."""
    name = checkpoint.parent.name
    lines, sources = texts_of(name, place)
    if name in ("bag", "classifier"):
        command = ["llrnn", "classify", "--path", str(checkpoint), "-k", "3"]
        return subprocess.run(command, input="\n".join(sources), text=True, capture_output=True, check=True).stdout
    if name == "discourse":
        command = ["llrnn", "encode", "--path", str(checkpoint), "--out", "vectors.npy"]
        subprocess.run(command, input="\n".join(lines), text=True, check=True)
        return np.load("vectors.npy").tolist()
    scorer = load_scorer(str(checkpoint), 2048, Places())
    if scorer.languages is not None:
        return [-score for score in scorer.score(sources, lines)]
    return [-(sum(line.log_probs) + sum(line.spelt)) for line in TextScorer(scorer).lines(lines, is_open=True)]


place = Path(sys.argv[1])
os.chdir(place)
place = Path(".")
for checkpoint in sorted(place.glob("models/*/checkpoint_last.pt")):  # which folder trained them is nobody's business
    state = torch.load(checkpoint, weights_only=False)
    for options in (state["cfg"]["common"], *map(vars, filter(is_namespace, state["cfg"].values()))):
        if "user_dir" in options:
            options["user_dir"] = "fairseq_llrnn"
    torch.save(state, checkpoint)
recorded = {"priors": {}, "models": {}}
for folder in sorted(place.glob("priors/*")):
    recorded["priors"][folder.name] = facts(Prior.load(folder, load_general_model), *texts_of(folder.name, place))
for checkpoint in sorted(place.glob("models/*/checkpoint_last.pt")):
    recorded["models"][checkpoint.parent.name] = scores(checkpoint, place)
Path("scores.json").write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
files = [
    *place.glob("priors/**/*"), *place.glob("models/*/*.pt"), *place.glob("*/dict*.txt"), *place.glob("novel/*.[jt]*"),
    *place.glob("*/train.*-*.idx"), *place.glob("*test.*"), Path("forms.tsv"), Path("scores.json"),
]  # fmt: skip
with zipfile.ZipFile(Path(__file__).parent / "stored.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for file in sorted(set(files)):
        if file.is_file():
            archive.write(file)
