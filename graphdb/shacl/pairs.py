"""Focus nodes with their value nodes, as patterns, and how to come by them quickly.

Two ways lead to the values of a property: from each focus node to its values, or over all triples of the
property, asking of what is found whether its focus node is one. The second reads the index in one go, a tenth
of the time a triple, and little of what it reads has to be asked about: violations are few.
"""

from dataclasses import dataclass

from graphdb.shacl.data_graph import DataGraph
from graphdb.shacl.paths import InversePath, Path, PredicatePath, SequencePath
from graphdb.shacl.sources import ListSource, Source, TargetSource, ValuesSource
from graphdb.shacl.steps import step_from

__all__ = ["Pairs", "Planner"]

_PER_LOOKUP = 4  # triples that are read in the time that a look for those of one node takes
_FEW = 100  # focus nodes, for which it is not worth while to count
_SAMPLE = 100  # focus nodes, whose values are counted
_SIZE_MAX = 1_000_000  # nodes are not counted beyond


@dataclass(frozen=True, slots=True)
class Pairs:
    """pattern binds ?this and ?value, a pair perhaps more than once; rest is to come behind all that narrows
    it down, to keep those whose ?this is a focus node. scans says which way was chosen, size about how many
    pairs are looked at.
    """

    source: Source
    path: Path | None
    pattern: str
    rest: str
    scans: bool
    size: int

    def narrowed(self, narrowing: str) -> str:
        """The pairs for which the pattern that follows them holds."""
        return f"{{ {self.pattern} {narrowing} }} {self.rest}"


class Planner:
    """Chooses, for one validation."""

    def __init__(self, graph: DataGraph) -> None:
        self._graph = graph
        self._counts: dict[str, tuple[int, int]] = {}

    def pairs(self, source: Source, path: Path | None) -> Pairs:
        """Without a path, a node is its own value."""
        nodes = source.enumerated("?this")
        size = self.size(source)
        if path is None:
            return Pairs(source, path, f"{nodes} BIND(?this AS ?value)", "", scans=False, size=size)
        step = step_from(path, "?this", "?value")
        first = _first_step(path)
        if size > _FEW and first is not None:
            size *= self._values_each(nodes, step)
            most = _PER_LOOKUP * size
            triples = self._count(step_from(first, "?this", "?value"), most + 1)
            if triples <= most:
                return Pairs(source, path, f"{step} .", source.tested("?this"), scans=True, size=triples)
        return Pairs(source, path, f"{nodes} LATERAL {{ {step} }}", "", scans=False, size=size)

    def size(self, source: Source) -> int:
        """About how many nodes a source has."""
        match source:
            case ListSource():
                return len(source.nodes)
            case ValuesSource(source=inner):
                return self.size(inner)
            case TargetSource():
                return self._count(source.pattern("?this"), _SIZE_MAX)
            case _:
                raise AssertionError(source)

    def _values_each(self, nodes: str, step: str) -> int:
        """About how many values a focus node has, and one that is looked for in vain."""
        some = f"SELECT ?this {{ {nodes} }} LIMIT {_SAMPLE}"
        return 1 + self._count(f"{{ {some} }} LATERAL {{ {step} }}", _SAMPLE * _SAMPLE) // _SAMPLE

    def _count(self, pattern: str, enough: int) -> int:
        """How many solutions a pattern has, counting to enough."""
        counted_to, count = self._counts.get(pattern, (0, 0))
        if count == counted_to < enough:
            text = f"SELECT (1 AS ?one) {{ {pattern} }} LIMIT {enough}"
            count = self._graph.number(f"SELECT (COUNT(*) AS ?n) {{ {text} }}")
            self._counts[pattern] = enough, count
        return count


def _first_step(path: Path) -> Path | None:
    """Of a property, its inverse and a sequence of these, which can be read from the index; else None."""
    match path:
        case PredicatePath() | InversePath(path=PredicatePath()):
            return path
        case SequencePath(steps=steps) if all(_first_step(step) is step for step in steps):
            return steps[0]
        case _:
            return None
