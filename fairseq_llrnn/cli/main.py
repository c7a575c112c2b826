"""`llrnn`: find the sub-command, import only its module, run it, and print errors in one line.

Exit status: 0 done; 1 an output or another file cannot be written or read; 2 an error that the user can fix; 130
interrupted; 129 and 143 stopped by SIGHUP and SIGTERM; 141 the reader of stdout is closed. Errors are printed to
stderr.
"""

import argparse
import atexit
import errno
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
from fairseq_llrnn.cli.places import expanded
from fairseq_llrnn.cli.tables import drop_output, note, notes_of_readers, open_streams, output_error, plain_warnings
from fairseq_llrnn.errors import LLRNNError, OptionError, as_one_line, did_you_mean, with_option
from fairseq_llrnn.version import __version__

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# The module of a sub-command is its name with "_" for "-", or `command` in a folder of that name. fairseq's commands
# share one module. registry.py finds those of systems.
FAIRSEQ = ("train", "validate", "eval-lm", "generate", "interactive")
FOLDERS = ("prior", "show", "explain")
AGAIN_AFTER = 0.1  # seconds after which a postponed interruption is raised again
MOST_DELAY = 1.0  # seconds that an interruption waits for an import
COMMANDS = (
    "text", "dictionary", "lexicon", "prior", *FAIRSEQ, "show", "explain", "score", "compare", "export", "user-dir",
)  # fmt: skip


class Command(Protocol):
    """The interface of a sub-command's module."""

    NAME: str
    HELP: str
    EXAMPLES: tuple[str, ...]  # command lines; `llrnn --help` shows the first one

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def all_commands() -> dict[str, str]:
    """Return all sub-commands, ours first, then those of systems and other packages: name -> module."""
    built_in = {name: f"fairseq_llrnn.cli.{name.replace('-', '_')}" for name in COMMANDS}
    built_in |= {name: f"{built_in[name]}.command" for name in FOLDERS}
    of_fairseq = {name: f"fairseq_llrnn.cli.fairseq_commands:{name.upper().replace('-', '_')}" for name in FAIRSEQ}
    return built_in | of_fairseq | registry.names("commands")


def load(name: str) -> Command:
    """Import a sub-command's module. Raises OptionError, with the nearest name, if there is none."""
    modules = all_commands()
    if name not in modules:
        if reason := registry.lost(name.partition(" ")[0]):
            raise OptionError(f"no sub-command '{name}'; {reason}")
        advice = did_you_mean(name, modules, f"choose from: {', '.join(modules)}")
        raise OptionError(f"no sub-command '{name}'; {advice} ('llrnn --help' lists all)")
    return cast(Command, registry.load(modules[name]))


def overview(group: str = "") -> str:
    """Return the help of `llrnn` itself: each sub-command with one example, on a line of its own for pasting.

    Args:
        group: first word of the sub-commands to list (`mrf` of `mrf train`). Empty: all.
    """
    lines = ["usage: llrnn SUB-COMMAND …", "", "Log-linear RNNs: build priors, train models, explain both.", ""]
    if group:
        lines = [f"usage: llrnn {group} SUB-COMMAND …", ""]
    names = [name for name in all_commands() if group in ("", name.partition(" ")[0])]
    width = max(map(len, names))
    for name in names:
        command = load(name)
        lines += [f"  {name:<{width}} {command.HELP}", f"    {command.EXAMPLES[0]}", ""]
    lines += ["'llrnn SUB-COMMAND --help' lists its arguments, 'llrnn --version' prints the version."]
    return "\n".join(lines)


def dispatch(argv: Sequence[str]) -> int:
    """Run the sub-command of the arguments. Errors that the user can fix are raised."""
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
    """Keep all values of a repeated option that takes several. argparse would keep only the last ones."""

    before: object = None

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if option is not None and self.before not in (None, values):
            if self.nargs in ("+", "*"):
                values = [*cast(list[Any], self.before), *values]
            else:  # scripts append an option to change an earlier one
                note(f"{option}: found {self.before} and {values}; the last value is used")
        self.before = values
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """The parser of a sub-command. Its errors are one line, with the nearest option.

    Args:
        arguments: the typed arguments.
    """

    def __init__(self, command: Command, arguments: Sequence[str] = ()) -> None:
        super().__init__(prog=f"llrnn {command.NAME}", description=command.HELP)
        self.command, self.arguments = command, arguments
        self.is_of_fairseq = command.NAME in FAIRSEQ  # fairseq parses the arguments
        self.register("action", None, _Store)
        self.register("action", "store", _Store)
        command.add_arguments(self)

    def format_help(self) -> str:
        """Return the usual help, and the examples below it, each on one line for pasting."""
        examples = [f"  {example}" for example in self.command.EXAMPLES]
        return "\n".join([super().format_help(), "examples:", *examples, ""])

    def read(self) -> argparse.Namespace:
        """Parse the arguments. Words and sentences may follow options."""
        if self.is_of_fairseq and ("-v" in self.arguments or not {"-h", "--help"} & set(self.arguments)):
            return argparse.Namespace(arguments=self.arguments)
        return self.parse_intermixed_args(["--help"] if self.is_of_fairseq else self.arguments)

    def named(self, args: argparse.Namespace) -> Iterator[tuple[str, str]]:
        """Yield each option with each of its values. Positional arguments have an empty option."""
        for action in self._actions:
            value = getattr(args, action.dest, None)
            for item in value if isinstance(value, list) else [] if value is None else [value]:
                yield "".join(action.option_strings[-1:]), str(item)

    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        """Print the help. Unlike argparse, it raises an error if the help cannot be written."""
        (sys.stdout if file is None else file).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"unrecognized arguments: --([\w-]+)", message)
        if unknown and hasattr(self.command, "key_of") and (key := self.command.key_of(unknown[1])) is not None:
            message += f"; use --set {key}=VALUE"
        exit_with_argument_error(self, self.arguments, message)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the console script and return the exit status."""
    open_streams()
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except BrokenPipeError:
        drop_output()
        return 141
    except OSError as error:
        if error.filename is not None:  # otherwise an error of stdout
            print(as_one_line(f"llrnn: error: {error.filename}: {error.strerror or error}"), file=sys.stderr)
        else:
            reason, fix = error.strerror or str(error), "free some space, or write it elsewhere"
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
    sys.stdout.flush()  # raises an error here, not while Python exits
    return status


@contextmanager
def _stopped_as_if_interrupted() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, so that temporary files are removed.

    An ignored signal (nohup) stays ignored. In two places the exception would be lost, and is raised a little later:

    - during an import: modules catch it there, and numpy's C code drops it. After MOST_DELAY seconds the process ends
      at once;
    - in a destructor: Python prints the exception and continues. The destructor of a data loader waits for its
      processes.

    Compiled code may turn KeyboardInterrupt into an error of its own (pydantic's SchemaError). It is turned back.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    postponed, since, is_raised = 0, 0.0, False  # last signal, time of the first one, whether it was raised

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
    except Exception:
        if is_raised:
            raise KeyboardInterrupt(postponed) from None
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook_before
        for number, handler in before.items():
            signal.signal(number, handler)
        if postponed and not is_raised:  # the command ended before the next alarm
            raise KeyboardInterrupt(postponed)


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether the frame is inside an import."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


if __name__ == "__main__":
    sys.exit(main())
