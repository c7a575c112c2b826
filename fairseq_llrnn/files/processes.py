"""A function over many inputs in several processes, the results in the order of the inputs.

Each worker is a Python of its own that imports the function's module and nothing else: no torch, no fairseq, and not
the program that calls us, which need not be written for that (`multiprocessing` would run it again in every process).
Inputs and results travel as pickles between us and processes that we have started; none comes from a file. A worker
ends when we do, whatever ends us.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, TypeVar

from fairseq_llrnn.errors import DataError

MOST_BY_DEFAULT = 16  # processes: more have to wait for the one that reads and adds up; each takes about 100 MB
MOST_WORKERS = 256  # processes that anybody may ask for
FEW = 4  # inputs that are sooner done than a process is started
AHEAD = 2  # inputs for each worker that wait or are worked on
Input = TypeVar("Input")
Result = TypeVar("Result")


def default_workers() -> int:
    """One for each core that this process may use, at most MOST_BY_DEFAULT."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_BY_DEFAULT)


def ordered(
    function: Callable[[Input], Result], inputs: Iterator[Input], workers: int | None = None
) -> Iterator[tuple[Input, Result]]:
    """Inputs and what the function makes of them, in order; an error of the function comes in its place, too.

    Args:
        function: of a module's top level. workers: processes (None: `default_workers()`); where there are FEW inputs,
            or one worker, the function runs here.

    Raises:
        DataError: a worker was killed.
    """
    workers = default_workers() if workers is None else workers
    first = list(islice(inputs, FEW))
    if workers == 1 or len(first) < FEW or not sys.executable:
        for one in chain(first, inputs):
            yield one, function(one)
        return
    idle: SimpleQueue[_Worker] = SimpleQueue()
    started = [_Worker(function) for _ in range(workers)]
    for worker in started:
        idle.put(worker)

    def work(one: Input) -> Result:
        worker = idle.get()
        try:
            result: Result = worker.ask(one)
        finally:
            idle.put(worker)
        return result

    try:
        with ThreadPoolExecutor(workers) as threads:
            waiting: deque[tuple[Input, Future[Result]]] = deque()
            try:
                for one in chain(first, inputs):
                    waiting.append((one, threads.submit(work, one)))
                    if len(waiting) >= AHEAD * workers:
                        done, future = waiting.popleft()
                        yield done, future.result()
                while waiting:
                    done, future = waiting.popleft()
                    yield done, future.result()
            finally:
                for _, future in waiting:
                    future.cancel()
    finally:
        for worker in started:
            worker.close()


class _Worker:
    """A process that answers one input after the other."""

    def __init__(self, function: Callable[..., Any]) -> None:
        ours = str(Path(__file__).resolve().parents[2])  # where this package is, installed or not
        path = os.pathsep.join([ours, *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        self._send(function)

    def ask(self, one: object) -> Any:
        """What the function makes of an input; its error is raised here."""
        assert self.process.stdout is not None
        self._send(one)
        try:
            is_error, result = pickle.load(self.process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            raise self._ended() from None
        if is_error:
            raise result
        return result

    def _send(self, something: object) -> None:
        assert self.process.stdin is not None
        try:
            pickle.dump(something, self.process.stdin, pickle.HIGHEST_PROTOCOL)
            self.process.stdin.flush()
        except OSError:
            raise self._ended() from None

    def _ended(self) -> DataError:
        return DataError(
            f"a process that worked on the text ended (status {self.process.wait()}), perhaps for want of memory; give "
            "`llrnn prior` fewer of them, e.g. --set workers=1"
        )

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        self.process.wait()


def serve(inputs: IO[bytes], results: IO[bytes]) -> None:
    """Answer inputs until there are no more, by a function that comes before them: what a worker does."""
    function: Callable[[object], object] = pickle.load(inputs)
    while True:
        try:
            one = pickle.load(inputs)
        except (EOFError, pickle.UnpicklingError):  # the one who asks has ended, or was killed
            return
        answer: tuple[bool, object]
        try:
            answer = False, function(one)
        except Exception as error:
            answer = True, error
        try:
            pickle.dump(answer, results, pickle.HIGHEST_PROTOCOL)
            results.flush()
        except BrokenPipeError:  # nobody waits for it any more
            os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks us gets it, too, and closes our input
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed is no answer
    serve(sys.stdin.buffer, answers)
