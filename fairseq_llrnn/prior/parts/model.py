"""A frozen language model whose next-word probabilities are the background (backgrounds/language_model.py)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Gt, Le
from typing_extensions import Doc

from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.features.dictionary import EOS
from fairseq_llrnn.files.numbers import TEMPERATURE
from fairseq_llrnn.files.reading import is_pipe
from fairseq_llrnn.prior.model_files import LoadModel, ModelFiles
from fairseq_llrnn.prior.named_backgrounds import Inputs, register_background
from fairseq_llrnn.prior.part import BuildContext, Part, PriorView, SavedPart, register_part
from fairseq_llrnn.settings import FolderPath, Settings

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.background import Background


@register_part("model")
@dataclass(frozen=True)
class ModelPart(Part):
    """The files of a model, for the words that b₀ allows."""

    files: ModelFiles
    load: LoadModel | None = field(default=None, compare=False, repr=False)  # builds the model

    is_base = True
    needs_fairseq = True

    def description(self) -> dict[str, Any]:
        return self.files.description()

    def write(self, folder: Path) -> None:
        self.files.write(folder)

    @property
    def identity(self) -> str:
        return self.files.identity

    @classmethod
    def read(cls, saved: SavedPart) -> ModelPart:
        return cls(ModelFiles.described(saved.description, saved.folder), saved.load_model)

    def lines(self, prior: PriorView) -> list[str]:
        return ["a frozen language model", f"weight {self.files.weight:g}", f"temperature {self.files.temperature:g}"]

    def background(self, below: Background, context: BuildContext) -> Background:
        """Return the model as a background. Raises PriorError if no loader of models was given."""
        from fairseq_llrnn.backgrounds.language_model import ModelBackground

        if self.load is None:
            raise PriorError(
                "the prior's background is a model, which only fairseq can build: use the prior in one of fairseq's "
                "commands, or in llrnn explain or rescore"
            )
        prior, files = context.prior, self.files
        model = self.load(files, prior.symbols, prior.allowed)
        return ModelBackground(
            context.class_of, context.num_classes, context.log_weights, prior.index(EOS), model, files.weight,
            files.temperature,
        )  # fmt: skip


@dataclass(frozen=True)
class ModelOptions(Settings):
    """Options of `model(FILE, …)`."""

    weight: Annotated[
        float, Gt(0), Le(1),
        Doc(
            "share of the model in the background; b₀ has the rest, so that words with a tiny probability in the "
            "model stay possible"
        ),
    ] = 1.0  # fmt: skip
    temperature: Annotated[float, *TEMPERATURE, Doc("flattens it: b to the power of 1/T")] = 1.0
    data: Annotated[FolderPath | None, Doc("its data folder (default: that of its training)")] = None
    prior: Annotated[FolderPath | None, Doc("its prior, if it has one (default: that of its training)")] = None


def _is_checkpoint(source: str) -> bool:
    if is_pipe(source):
        raise ValueError("expected a checkpoint after the name, found a pipe; give a file")
    if not os.path.isfile(source):
        raise ValueError("expected a checkpoint after the name, found none; give the .pt file that training wrote")
    return True


@register_background("model", ModelPart, "model:checkpoint_best.pt", is_file=_is_checkpoint, options=ModelOptions)
def read_model(source: str, prior: PriorView, inputs: Inputs) -> tuple[Part, Mapping[str, int]]:
    assert inputs.open_model is not None  # checked by check_background
    return inputs.open_model(source, prior, inputs.options)
