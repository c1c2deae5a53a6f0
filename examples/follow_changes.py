"""Keep a copy of a service's quads up to date, in a store on disk. It may be ended at any time, and resumes.

python examples/follow_changes.py http://127.0.0.1:7001 copy
"""

import json
import sys
from pathlib import Path

import httpx
from pyoxigraph import RdfFormat, Store, parse


def follow(url: str, directory: Path, until: float = float("inf")) -> Store:
    """Apply each change as it is reported, up to the log index `until`."""
    directory.mkdir(parents=True, exist_ok=True)
    store, position = Store(str(directory / "quads")), directory / "position"
    with httpx.Client(base_url=url, timeout=None) as client:
        if not position.exists():
            whole = client.get("/data?dataset=all", headers={"Accept": "application/n-quads"})
            store.clear()
            store.bulk_load(whole.content, RdfFormat.N_QUADS)
            position.write_text(whole.headers["X-Snapshot-Index"])
        with client.stream("GET", "/changes", params={"since": position.read_text()}) as answer:
            if answer.status_code == 410:  # the log is not kept so long
                position.unlink()
                return follow(url, directory, until)
            for line in answer.iter_lines():
                change = json.loads(line)
                for quad in parse("\n".join(change.get("removed", ())), RdfFormat.N_QUADS):
                    store.remove(quad)
                store.extend(parse("\n".join(change.get("added", ())), RdfFormat.N_QUADS))
                if "more" not in change and "error" not in change:  # else its other lines are still to come
                    store.flush()
                    position.write_text(str(change["index"]))  # applying a change again would do no harm
                    if change["index"] >= until:
                        break
    return store


if __name__ == "__main__":
    follow(sys.argv[1], Path(sys.argv[2]))
