"""Runs query texts in an engine of its own process, whose death is an answer too.

`python -m tests.support.engine_probe STACK_BYTES` reads a JSON list of texts from standard input, evaluates
one after the other on a thread with such a stack, against an empty store and against one of a single triple,
and prints for each the processor seconds that it took on the store where it took longer.
"""

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from pyoxigraph import NamedNode, Quad, QueryBoolean, Store

__all__ = ["probe"]


def probe(texts: Sequence[str], stack_bytes: int, timeout_s: float) -> tuple[list[float], int]:
    """The seconds of each text that was evaluated to its end, and the exit code: negative for a signal.

    Raises subprocess.TimeoutExpired.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.engine_probe", str(stack_bytes)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return [float(line) for line in done.stdout.split()], done.returncode


def _evaluate(texts: Sequence[str]) -> None:
    a = NamedNode("urn:a")
    small = Store()
    small.extend((Quad(a, a, a), Quad(a, a, a, a)))
    stores = (Store(), small)
    for text in texts:
        print(max(_seconds(store, text) for store in stores), flush=True)


def _seconds(store: Store, text: str) -> float:
    began = time.thread_time()
    answer = store.query(text)
    if not isinstance(answer, QueryBoolean):
        list(itertools.islice(answer, 100))
    return time.thread_time() - began


if __name__ == "__main__":
    threading.stack_size(int(sys.argv[1]))
    thread = threading.Thread(target=_evaluate, args=(json.load(sys.stdin),))
    thread.start()
    thread.join()
