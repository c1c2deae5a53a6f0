"""`python -m tests.simulation.raft --seeds 5000`: many runs. A seed that fails replays exactly."""

import argparse
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.raft.world import run_seed


def try_seed(seed: int) -> tuple[int, str | None, int, int]:
    """(seed, what went wrong, entries applied, reads answered)."""
    try:
        checker = run_seed(seed).checker
    except Exception:  # noqa: BLE001 whatever it is, the seed is named
        return seed, traceback.format_exc(limit=-8), 0, 0
    return seed, None, len(checker.applied), checker.reads


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.raft")
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    begin = time.monotonic()
    failed = entries = reads = 0
    with ProcessPoolExecutor(options.processes) as pool:
        for seed, failure, applied, answered in pool.map(try_seed, seeds, chunksize=4):
            entries, reads = entries + applied, reads + answered
            if failure is not None:
                failed += 1
                print(f"seed {seed} (run_seed({seed}) replays it):\n{failure}", flush=True)
    seconds = time.monotonic() - begin
    print(f"{len(seeds)} seeds, {failed} failed, {entries} entries, {reads} reads, {seconds:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
