"""`llrnn`: find the sub-command, import only that one, run it, and turn a user's errors into one line.

Exit status: 0 done; 1 the output, or another file, cannot be written or read; 2 an error that the user can fix (both
are said on stderr); 130 interrupted; 129 and 143 stopped by SIGHUP and SIGTERM, which end like an interruption; 141 the
reader of our output went away.
"""

import argparse
import atexit
import difflib
import errno
import itertools
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

from fairseq_llrnn import registry
from fairseq_llrnn.argument_errors import exit_with_argument_error
from fairseq_llrnn.cli.places import check_folder, expanded
from fairseq_llrnn.cli.tables import drop_output, note, notes_of_readers, open_streams, output_error, plain_warnings
from fairseq_llrnn.errors import LLRNNError, OptionError, as_one_line, with_option
from fairseq_llrnn.version import __version__

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# The module of each is its name with "_" for "-", or `command` in a folder of that name; those of fairseq's share one.
# Others are found by registry.py.
FAIRSEQ = ("train", "validate", "eval-lm", "generate", "interactive")
FOLDERS = ("prior", "show", "explain")
FOLDERS_OF_FAIRSEQ = ("--save-dir", "--results-path", "--tensorboard-logdir")  # options of folders that it makes
AGAIN_AFTER = 0.1  # seconds after which a postponed interruption is raised again
MOST_DELAY = 1.0  # seconds that an interruption waits for an import
COMMANDS = (
    *("text", "dictionary", "lexicon", "prior", *FAIRSEQ, "show", "explain", "score"),
    *("export", "user-dir", "completion"),
)


class Command(Protocol):
    """What a module of fairseq_llrnn.cli offers."""

    NAME: str
    HELP: str
    EXAMPLES: tuple[str, ...]  # command lines; `llrnn --help` shows the first one

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def all_commands() -> dict[str, str]:
    """Every sub-command, ours and then those of systems and other packages: name -> module."""
    built_in = {name: f"fairseq_llrnn.cli.{name.replace('-', '_')}" for name in COMMANDS}
    built_in |= {name: f"{built_in[name]}.command" for name in FOLDERS}
    of_fairseq = {name: f"fairseq_llrnn.cli.fairseq_commands:{name.upper().replace('-', '_')}" for name in FAIRSEQ}
    return built_in | of_fairseq | registry.names("commands")


def load(name: str) -> Command:
    """The sub-command's module. Raises OptionError, with the nearest name, if there is none."""
    modules = all_commands()
    if name not in modules:
        if reason := registry.lost(name.partition(" ")[0]):
            raise OptionError(f"there is no sub-command '{name}'; {reason}")
        near = difflib.get_close_matches(name, modules, n=1)
        advice = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(modules)}"
        raise OptionError(f"there is no sub-command '{name}'; {advice} ('llrnn --help' shows them all)")
    return cast(Command, registry.load(modules[name]))


def overview(group: str = "") -> str:
    """The help of `llrnn` itself: every sub-command with one example, in lines of their own, to be pasted.

    Args:
        group: the first word of those that are meant (`mrf` of `mrf train`); empty: all are.
    """
    lines = ["usage: llrnn SUB-COMMAND …", "", "Log-linear RNNs: make priors, look into priors and models.", ""]
    if group:
        lines = [f"usage: llrnn {group} SUB-COMMAND …", ""]
    names = [name for name in all_commands() if group in ("", name.partition(" ")[0])]
    width = max(map(len, names))
    for name in names:
        command = load(name)
        lines += [f"  {name:<{width}} {command.HELP}", f"    {command.EXAMPLES[0]}", ""]
    lines += ["'llrnn SUB-COMMAND --help' shows its arguments; 'llrnn --version' the version."]
    return "\n".join(lines)


def dispatch(argv: Sequence[str]) -> int:
    """Run the sub-command of the arguments; the errors of a user propagate."""
    argv = expanded(argv)
    if not argv or argv[0] in ("-h", "--help"):
        print(overview())
        return 0
    if argv[0] == "--version":
        print(f"llrnn {__version__}")
        return 0
    groups = {name.partition(" ")[0] for name in all_commands() if " " in name}
    if argv[0] in groups and (len(argv) == 1 or argv[1] in ("-h", "--help")):
        print(overview(argv[0]))
        return 0
    words = 2 if argv[0] in groups else 1
    command = load(" ".join(argv[:words]))
    parser = Parser(command, argv[words:])
    args = parser.read()
    try:
        return command.run(args)
    except LLRNNError as error:
        error.args = (with_option(error, parser.named(args)),)
        raise


class _Store(argparse.Action):
    """Keeps all values of an option that takes several; argparse would keep the last ones in silence."""

    before: object = None

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if option is not None and self.before not in (None, values):
            if self.nargs in ("+", "*"):
                values = [*cast(list[Any], self.before), *values]
            else:  # scripts rely on this, to change an option that they gave before
                note(f"{option}: given as {self.before} and as {values}; the last one counts")
        self.before = values
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """That of a sub-command: it says in one line what is wrong with the arguments, and the nearest option.

    Args:
        arguments: as they were typed.
    """

    def __init__(self, command: Command, arguments: Sequence[str] = ()) -> None:
        super().__init__(prog=f"llrnn {command.NAME}", description=command.HELP)
        self.command, self.arguments = command, arguments
        self.passes_on = command.NAME in FAIRSEQ  # which reads them
        self.register("action", None, _Store)
        self.register("action", "store", _Store)
        command.add_arguments(self)

    def format_help(self) -> str:
        """As usual; the examples at its end stand as they can be pasted, each in one line, with nothing before it."""
        examples = [f"  {example}" for example in self.command.EXAMPLES]
        return "\n".join([super().format_help(), "examples:", *examples, ""])

    def read(self) -> argparse.Namespace:
        """The values of the arguments. Words and sentences may follow options."""
        if self.passes_on and ("-v" in self.arguments or not {"-h", "--help"} & set(self.arguments)):
            for option, value in itertools.pairwise((*self.arguments, "")):
                option, equals, inside = option.partition("=")
                if option in FOLDERS_OF_FAIRSEQ:
                    check_folder(option, inside if equals else value)
            return argparse.Namespace(arguments=self.arguments)
        args = self.parse_intermixed_args(["--help"] if self.passes_on else self.arguments)
        for action in self._actions:
            if action.metavar == "DIR":
                check_folder("".join(action.option_strings[-1:]), getattr(args, action.dest, None))
        return args

    def named(self, args: argparse.Namespace) -> Iterator[tuple[str, str]]:
        """Each option with each of its values; arguments without an option have an empty one."""
        for action in self._actions:
            value = getattr(args, action.dest, None)
            for one in value if isinstance(value, list) else [] if value is None else [value]:
                yield "".join(action.option_strings[-1:]), str(one)

    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        """As usual; where it cannot be written, that is an error."""
        (sys.stdout if file is None else file).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"unrecognized arguments: --([\w-]+)", message)
        if unknown and hasattr(self.command, "key_of") and (key := self.command.key_of(unknown[1])) is not None:
            message += f"; as a key of the recipe it is --set {key}=VALUE"
        exit_with_argument_error(self, self.arguments, message)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns the exit status."""
    open_streams()
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except BrokenPipeError:
        drop_output()
        return 141
    except OSError as error:
        if error.filename is not None:  # else it is of stdout
            print(as_one_line(f"llrnn: error: {error.filename}: {error.strerror or error}"), file=sys.stderr)
        else:
            reason, fix = error.strerror or str(error), "make room, or give another"
            if error.errno == errno.EBADF:
                reason, fix = "stdout is closed", "redirect it to a file, a pipe or /dev/null"
            print(f"llrnn: error: the output cannot be written: {reason}; {fix}", file=sys.stderr)
            drop_output()
        return 1


def _run(argv: Sequence[str]) -> int:
    try:
        with _stopped_as_if_interrupted(), plain_warnings(), notes_of_readers():
            status = dispatch(argv)
    except LLRNNError as error:
        print(f"llrnn: error: {error}", file=sys.stderr)
        if output_error() is not None:
            drop_output()
        return 2
    except KeyboardInterrupt as stop:
        print("llrnn: interrupted", file=sys.stderr)
        return 128 + (stop.args[0] if stop.args else signal.SIGINT)
    except SystemExit as stop:  # argparse's
        if stop.code in (0, None):
            sys.stdout.flush()
        raise
    sys.stdout.flush()  # so that an error shows here and not while Python exits
    return status


@contextmanager
def _stopped_as_if_interrupted() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, so that temporary files are removed.

    An ignored signal (nohup) stays ignored. The exception would be lost in two places, and is raised a little later:

    - during an import: modules catch what is raised there, and numpy's C code drops it. After MOST_DELAY seconds the
      process ends where it is;
    - in a destructor: Python prints it and goes on. That of a data loader waits there for its processes to end.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    postponed, since, is_raised = 0, 0.0, False  # the last signal, when the first came, whether it was raised

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal postponed, since, is_raised
        since = since or time.monotonic()
        postponed = postponed if number == signal.SIGALRM and postponed else number
        is_raised = not _is_importing(frame)
        if is_raised:
            raise KeyboardInterrupt(postponed)
        if time.monotonic() - since > MOST_DELAY:
            os.write(2, b"llrnn: interrupted\n")  # a print may be under way
            atexit._run_exitfuncs()
            os._exit(128 + postponed)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_AFTER)

    def unraisable_hook(lost: "sys.UnraisableHookArgs") -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, AGAIN_AFTER)
        else:
            hook_before(lost)

    defaults = (signal.SIG_DFL, signal.default_int_handler)
    stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ours = [number for number in stops if signal.getsignal(number) in defaults]
    before = {number: signal.signal(number, stop) for number in (*ours, signal.SIGALRM)}
    hook_before, sys.unraisablehook = sys.unraisablehook, unraisable_hook
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook_before
        for number, handler in before.items():
            signal.signal(number, handler)
        if postponed and not is_raised:  # the command ended before the next alarm
            raise KeyboardInterrupt(postponed)


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether a module is being imported where the program is."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


if __name__ == "__main__":
    sys.exit(main())
