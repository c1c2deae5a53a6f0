"""The program of the processes beside a search port: see `actors.search.search_process`.

`python -m serve.deployments.search_process FD MEMORY_LIMIT_MB SCORER WEIGHT WEIGHT`: FD is the number of its
socket, over which come first the channel and the memory that it shares with the port. It serves the
connections that the port lends to it (`serve.port.borrowing`) on a thread beside.
"""

import gc
import os
import socket
import sys
import threading
import time

from actors.freed_memory import keep_freed
from actors.process_bounds import settle
from actors.search.kept_documents import keep_documents_by_memory
from actors.search.search_process import SearchProcess
from actors.search.search_processes import SharedMemory, lending_memory
from actors.search.warm_up import warm_up
from graphdb.search.hybrid import scorer_of
from graphdb.search.results import SearchOptions
from serve.port.borrowing import Borrower
from serve.port.ledger import Ledger
from serve.port.server import SAFE_HEADERS
from serve.search.searching.quick_searches import LentSearches

__all__ = ["main"]

_SWITCH_S = 0.0005  # as in the port: so long a long search keeps a short one waiting for its turn
_COLLECT_AFTER = 20_000  # more objects: a search makes hundreds, and few of them in circles


def main() -> None:
    """See the module."""
    number, memory_limit_mb, scorer_name, *weights = sys.argv[1:]
    settle(int(memory_limit_mb))
    keep_freed()
    keep_documents_by_memory()
    sys.setswitchinterval(_SWITCH_S)
    warm_up()
    first, second = map(float, weights)
    scorer = scorer_of(scorer_name, (first, second))
    with socket.socket(fileno=int(number)) as connection:
        _, (channel, lent, states), _, _ = socket.recv_fds(connection, 1, 3)
        process = SearchProcess(connection, scorer, SharedMemory(states).view.cast("Q"))
        searches = LentSearches(process.find, SearchOptions(raw_source=True, hybrid=scorer), _now_ms)
        ledger, beat = lending_memory(SharedMemory(lent))
        borrower = Borrower(
            *(socket.socket(fileno=channel), Ledger(ledger), beat, searches, searches.done, SAFE_HEADERS)
        )
        threading.Thread(target=_serve, args=(borrower,), daemon=True).start()
        gc.collect()
        gc.freeze()  # what has been imported lives as long as the process
        gc.set_threshold(_COLLECT_AFTER)
        process.run()


def _serve(borrower: Borrower) -> None:
    """Without it the port would wait for its connections: the process ends with it."""
    try:
        borrower.run()
    finally:
        os._exit(1)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main()
