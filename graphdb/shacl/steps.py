"""Paths as patterns of SPARQL, for what is bound on either side.

A path of length zero leads from a node to itself even where the graph does not hold it (SPARQL 1.1, section
18.4); the engine finds it only where it does. So it is written out.
"""

from graphdb.shacl.paths import Path, is_nullable, path_text

__all__ = ["step_between", "step_from", "step_to"]


def step_from(path: Path, start: str, end: str) -> str:
    """Where start is bound and the variable end is not."""
    return _step(path, start, end, f"BIND({start} AS {end})")


def step_to(path: Path, start: str, end: str) -> str:
    """Where end is bound and the variable start is not."""
    return _step(path, start, end, f"BIND({end} AS {start})")


def step_between(path: Path, start: str, end: str) -> str:
    """Where both are bound; end may be a constant."""
    return _step(path, start, end, f"FILTER(sameTerm({start}, {end}))")


def _step(path: Path, start: str, end: str, none: str) -> str:
    step = f"{start} {path_text(path)} {end}"
    return f"{{ {step} }} UNION {{ {none} }}" if is_nullable(path) else step
