"""`python -m actors.columns.dumping STORE DIRECTORY`: a store as rows (`StoreRows`), in files.

On standard output come the names of graphs, an empty line, those of predicates, an empty line, and then the
name of each file that is whole; on standard input a byte for each that has been taken in and deleted.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, cast

from pyoxigraph import Store

from actors.columns.row_files import RowFiles, RowOutput
from graphdb.columns.store_rows import StoreRows

__all__: list[str] = []

_THREADS = 2  # pyoxigraph lets the other run while it looks terms up
_FILES = 4  # at a time, with those that are being written
_FILE_BYTES = 32 << 20  # at most


def _main() -> None:
    store, directory = sys.argv[1:]
    files = RowFiles(Path(directory), _FILE_BYTES, _FILES, lambda path: _say(path.name))
    Thread(target=_hear, args=(files,), daemon=True).start()
    rows = StoreRows(Store.read_only(store))
    _say(*rows.graphs, "", *rows.predicates, "")
    outputs = [RowOutput(files) for _ in range(_THREADS)]
    free: SimpleQueue[RowOutput] = SimpleQueue()
    for output in outputs:
        free.put(output)

    def write(predicates: range) -> None:
        output = free.get()
        try:
            rows.write(predicates, cast(IO[bytes], output))  # no more of it is asked for
        finally:
            free.put(output)

    with ThreadPoolExecutor(_THREADS) as threads:
        for _ in threads.map(write, rows.batches()):
            pass
    for output in outputs:
        output.close()
    files.wait_until_taken()


def _hear(files: RowFiles) -> None:
    """To the end of this process, or of whoever takes files in: then nobody wants the rest."""
    while os.read(sys.stdin.fileno(), 1):
        files.taken()
    os._exit(1)


def _say(*lines: str) -> None:
    sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    _main()
