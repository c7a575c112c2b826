"""The command `llrnn`: main.py finds the sub-command, and each sub-command has its own file.

A sub-command is a module with `NAME`, `HELP`, `EXAMPLES`, `add_arguments(parser)` and `run(args) -> int`, and a line
in `main.COMMANDS`. A system's sub-command is in its folder `commands` and needs no line. Import slow modules (torch,
fairseq) inside `run`, so that help stays fast.
"""
