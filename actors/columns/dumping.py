"""`python -m actors.columns.dumping PATH`: a store's named graphs, an empty line, then its quads, on standard
output as N-Quads. A process of its own, for the engine keeps Python from its turn while it writes.
"""

import sys

from pyoxigraph import RdfFormat, Store

__all__: list[str] = []


def _main() -> None:
    store = Store.read_only(sys.argv[1])
    out = sys.stdout.buffer
    out.writelines(f"{graph}\n".encode() for graph in store.named_graphs())
    out.write(b"\n")
    out.flush()
    store.dump(output=out, format=RdfFormat.N_QUADS)
    out.flush()


if __name__ == "__main__":
    _main()
