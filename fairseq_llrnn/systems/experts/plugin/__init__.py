"""The option --expert of our tasks and models, opened with a task's prior and dictionaries."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Optional  # fairseq reads Optional[X], and not X | None

from fairseq.dataclass import FairseqDataclass

from fairseq_llrnn.plugin.compat.safe_checkpoints import named_code
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, Args, Extension, TaskExtension
from fairseq_llrnn.systems.experts.user_code import OPTION

if TYPE_CHECKING:
    from fairseq_llrnn.systems.experts.panel import Panel


@dataclass
class ExpertConfig(FairseqDataclass):
    """Options of a task whose models may have experts."""

    expert: Optional[str] = field(
        default=None,
        metadata={
            "help": "path/to/file.py:ClassName, your class that scores the next word (several, separated by commas); "
            "checkpoints do not store it, so give it to every command"
        },
    )


class OpenedExperts(TaskExtension):
    """The experts of a task."""

    of_log_linear = f"--{OPTION}"

    def __init__(self, panel: "Panel") -> None:
        self.panel = panel


class Experts(Extension):
    """Heads with experts."""

    options: ClassVar = dict.fromkeys(("llrnn_language_modeling", "llrnn_translation"), ExpertConfig)
    modules: ClassVar = {"experts": f"--{OPTION}: expected this option"}

    def task_extension(self, task: Any, from_checkpoint: bool) -> OpenedExperts | None:
        """Raise OptionError for a missing file or class, and DataError for an expert that cannot be opened."""
        names = named_code(task.options, OPTION, from_checkpoint)
        if not names:
            return None
        from fairseq_llrnn.systems.experts.loading import load_experts, open_experts

        source = getattr(task, "src_dict", None)  # a language model has none
        word_of = None if source is None else source.__getitem__
        return OpenedExperts(open_experts(load_experts(names), task.prior, word_of))

    def head_arguments(self, args: Args, task: Any) -> dict[str, Any]:
        panels = [
            extension.panel for extension in getattr(task, "extensions", ()) if isinstance(extension, OpenedExperts)
        ]
        if not panels:
            return {}
        from fairseq_llrnn.systems.experts.features import experts_of

        return {"classes": [experts_of(panel) for panel in panels]}


EXTENSIONS.append(Experts())
