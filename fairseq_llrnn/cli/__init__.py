"""The command `llrnn`: main.py finds the sub-command, one file per sub-command does it.

A sub-command is a module with `NAME`, `HELP`, `add_arguments(parser)` and `run(args) -> int`, and a line in
`main.COMMANDS`; one of a system lies in its folder `commands`, and needs no line. What takes long to import (torch,
fairseq) it imports inside `run`: help stays instant.
"""
