"""--device of the benchmarks: a CPU, or a GPU where there is one."""

import argparse

import torch


def add_device_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where it is measured (default: cpu)")


def check_device(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """End with one message where a GPU is asked for and torch has none."""
    if args.device == "cuda" and not torch.cuda.is_available():
        built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built for CPUs"
        parser.error(
            f"--device cuda: expected a GPU that torch can use, found none (torch {torch.__version__}, {built}); "
            "leave it out, or go to a machine with one"
        )


def device_name(args: argparse.Namespace) -> str:
    """What figures say of where they were measured."""
    return torch.cuda.get_device_name() if args.device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
