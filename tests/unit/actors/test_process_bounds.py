"""What a child process does to itself."""

import subprocess
import sys

from actors.process_bounds import NICENESS

_ALL_THREADS = """
import os, threading, time
from pathlib import Path
from actors.process_bounds import give_way

threads = [threading.Thread(target=time.sleep, args=(60,), daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
give_way()
later = threading.Thread(target=time.sleep, args=(60,), daemon=True)
later.start()
found = [os.getpriority(os.PRIO_PROCESS, int(task.name)) for task in Path("/proc/self/task").iterdir()]
print(len(found) >= 5, set(found))
"""


def test_all_threads_give_way() -> None:
    done = subprocess.run([sys.executable, "-c", _ALL_THREADS], capture_output=True, text=True, check=True)
    assert done.stdout == f"True {{{NICENESS}}}\n"
