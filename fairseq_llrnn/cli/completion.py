"""`llrnn completion`: print a script with which a shell completes sub-commands, options and file names."""

import argparse

from fairseq_llrnn.errors import need_library

NAME = "completion"
HELP = "print a script that completes the options of llrnn in bash, zsh or fish"
EXAMPLES = ('eval "$(llrnn completion bash)"',)

SHELLS = ("bash", "zsh", "fish")
FOLDERS = ("DIR", "PRIOR", "DATA")  # metavars of arguments that are folders; others that are paths are files
FILES = ("FILE", "MODE_OR_FILE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    result = parser.add_argument_group("the script")
    result.add_argument(
        "shell", choices=SHELLS,
        help='bash (in ~/.bashrc: eval "$(llrnn completion bash)"), zsh (in a file _llrnn in a folder of $fpath), or '
        "fish (in ~/.config/fish/completions/llrnn.fish)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    print(script(args.shell))
    return 0


def script(shell: str) -> str:
    """Return the completion script of a shell. Raises OptionError if shtab is not installed."""
    need_library("llrnn completion", "shtab", "completion")
    import shtab

    return str(shtab.complete(_whole_parser(shtab.FILE, shtab.DIRECTORY), shell))


def _whole_parser(file: object, folder: object) -> argparse.ArgumentParser:
    """Return one parser for all sub-commands. Arguments that are files or folders are marked for completion."""
    from fairseq_llrnn.cli.main import all_commands, load  # which loads this module

    whole = argparse.ArgumentParser(prog="llrnn")
    whole.add_argument("--version", action="store_true", help="print the version")
    commands = {"": whole.add_subparsers()}
    for name in all_commands():
        command = load(name)
        group, _, last_word = name.rpartition(" ")  # `train` of `mrf train` is completed after `mrf`
        if group not in commands:
            group_parser = commands[""].add_parser(group, help=f"sub-commands of {group}")  # shtab needs the help
            commands[group] = group_parser.add_subparsers()
        parser = commands[group].add_parser(last_word, help=command.HELP, description=command.HELP)
        command.add_arguments(parser)
        for action in parser._actions:
            kind = file if action.metavar in FILES else folder if action.metavar in FOLDERS else None
            if kind is not None:
                action.complete = kind  # type: ignore[attr-defined]
    return whole
