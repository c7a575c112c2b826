"""A function over many inputs in several processes, with the results in the order of the inputs.

Each worker is a new Python process that imports only the function's module: no torch, no fairseq, and not the calling
program (`multiprocessing` would run it again in every process). Inputs and results are pickled between us and processes
that we have started. No pickle comes from a file. A worker ends when its parent does, for any reason.
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

MOST_BY_DEFAULT = 16  # processes: more would wait for the reading one; each takes about 100 MB
MOST_WORKERS = 256  # largest value of the option
FEW = 4  # with fewer inputs, no process is started
AHEAD = 2  # inputs per worker that are waiting or in work
Input = TypeVar("Input")
Result = TypeVar("Result")


def default_workers() -> int:
    """Return the number of cores that this process may use, at most MOST_BY_DEFAULT."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_BY_DEFAULT)


def ordered(
    function: Callable[[Input], Result], inputs: Iterator[Input], workers: int | None = None
) -> Iterator[tuple[Input, Result]]:
    """Yield inputs and the function's results, in order. An error of the function is also raised in order.

    Args:
        function: of a module's top level.
        workers: processes (None: `default_workers()`). With fewer than FEW inputs, or one worker, the function runs in
            this process.

    Raises:
        DataError: a worker was killed.
    """
    workers = default_workers() if workers is None else workers
    first = list(islice(inputs, FEW))
    if workers == 1 or len(first) < FEW or not sys.executable:
        for item in chain(first, inputs):
            yield item, function(item)
        return
    idle: SimpleQueue[_Worker] = SimpleQueue()
    started = [_Worker(function) for _ in range(workers)]
    for worker in started:
        idle.put(worker)

    def work(item: Input) -> Result:
        worker = idle.get()
        try:
            result: Result = worker.ask(item)
        finally:
            idle.put(worker)
        return result

    try:
        with ThreadPoolExecutor(workers) as threads:
            waiting: deque[tuple[Input, Future[Result]]] = deque()
            try:
                for item in chain(first, inputs):
                    waiting.append((item, threads.submit(work, item)))
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
    """A process that computes results for one input after the other."""

    def __init__(self, function: Callable[..., Any]) -> None:
        package_folder = str(Path(__file__).resolve().parents[2])  # the folder of this package, installed or not
        path = os.pathsep.join([package_folder, *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        self._send(function)

    def ask(self, item: object) -> Any:
        """Return the function's result for an input, or raise its error."""
        assert self.process.stdout is not None
        self._send(item)
        try:
            is_error, result = pickle.load(self.process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            raise self._ended() from None
        if is_error:
            raise result
        return result

    def _send(self, message: object) -> None:
        assert self.process.stdin is not None
        try:
            pickle.dump(message, self.process.stdin, pickle.HIGHEST_PROTOCOL)
            self.process.stdin.flush()
        except OSError:
            raise self._ended() from None

    def _ended(self) -> DataError:
        return DataError(
            f"a process that worked on the text ended (status {self.process.wait()}), perhaps for lack of memory; "
            "free some memory, or give `llrnn prior` fewer processes (--set workers=1)"
        )

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        self.process.wait()


def serve(inputs: IO[bytes], results: IO[bytes]) -> None:
    """Run a worker: read the function, then compute results for inputs until the end of the stream."""
    function: Callable[[object], object] = pickle.load(inputs)
    while True:
        try:
            item = pickle.load(inputs)
        except (EOFError, pickle.UnpicklingError):  # the parent has ended, or was killed
            return
        answer: tuple[bool, object]
        try:
            answer = False, function(item)
        except Exception as error:
            answer = True, error
        try:
            pickle.dump(answer, results, pickle.HIGHEST_PROTOCOL)
            results.flush()
        except BrokenPipeError:  # the parent has ended
            os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, too, and closes our input
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keeps printed text out of the answers
    serve(sys.stdin.buffer, answers)
