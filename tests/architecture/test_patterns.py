"""Patterns of `re` mean the same in every supported Python.

CPython 3.11.0 to 3.11.4 match wrongly where the body of a possessive group fails after its first character:
what the failed body had read counts as matched (https://github.com/python/cpython/issues/106052). A body that
ends with an empty alternative never fails, so the fault is not met: `(?:ab?c|)*+` and not `(?:ab?c)*+`,
`X(?:X|)*+` and not `(?:X)++`. Patterns of the `regex` package need none of this.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Run by an interpreter of its own, so that no module has compiled its patterns before.
_IMPORT = """
import importlib, sys
from re import _compiler

seen, compile_pattern = [], _compiler.compile

def note(pattern, flags=0):
    caller = sys._getframe(1)
    while caller.f_globals["__name__"].partition(".")[0] in ("re", "functools"):
        caller = caller.f_back
    seen.append((caller.f_globals["__name__"], pattern, int(flags)))
    return compile_pattern(pattern, flags)

_compiler.compile = note
for module in sys.argv[1:]:
    importlib.import_module(module)
print([each for each in seen if each[0] in sys.argv[1:]])
"""
_RISKY = re.compile(r"(?<![|(])\)[*?]\+|\)\+\+|\)\{[^}]*\}\+|\(\?>")  # in the source of a pattern


def is_risky(pattern: str | bytes, flags: int = 0) -> bool:
    """Whether a pattern has an atomic group, or a possessive one whose body can fail."""
    _parser: Any = import_module("re._parser")  # which has no public name

    def in_items(items: object) -> bool:
        if not isinstance(items, list | tuple | _parser.SubPattern):
            return False
        if isinstance(items, tuple) and len(items) == 2 and str(items[0]) == "ATOMIC_GROUP":
            return True
        if isinstance(items, tuple) and len(items) == 2 and str(items[0]) == "POSSESSIVE_REPEAT":
            body = items[1][2]
            operator, argument = body[0]
            is_one_character = len(body) == 1 and str(operator) in {"LITERAL", "NOT_LITERAL", "IN", "ANY"}
            never_fails = len(body) == 1 and str(operator) == "BRANCH" and not argument[1][-1]
            if not (is_one_character or (never_fails and items[1][0] == 0)):
                return True
        return any(map(in_items, items))

    return in_items(_parser.parse(pattern, flags))


def modules_with_patterns() -> Iterator[tuple[Path, ast.Module]]:
    for package in ("graphdb", "actors", "serve"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if "\nimport re\n" in (text := path.read_text()):
                yield path, ast.parse(text)


@pytest.mark.parametrize(
    ("pattern", "risky"),
    [
        ("(?:ab?c)*+", True),
        ("(?:ab?c)?+x", True),
        ("(?:ab?c){1,3}+", True),
        ("(?:ab?c|)++", True),  # would match nothing at all, too
        ("(?:(?:ab?c)*+|)*+", True),
        ("x(?>ab?c)", True),
        (rb"(?:[^x]|\\.)*+", True),
        ("(?:ab?c|)*+", False),
        ("(?:ab?c|d|)?+", False),
        ("a*+[a-z]++.{2,4}+(?:a)*+", False),
        ("(?:ab?c)*", False),
    ],
)
def test_tells_patterns_apart(pattern: str | bytes, risky: bool) -> None:
    assert is_risky(pattern) == risky


def test_no_module_compiles_a_risky_pattern() -> None:
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path, _ in modules_with_patterns()]
    run = subprocess.run(
        [sys.executable, "-c", _IMPORT, *modules], cwd=ROOT, capture_output=True, text=True, check=True
    )
    seen = ast.literal_eval(run.stdout)
    assert len(seen) > 100, "the modules compile their patterns"
    assert [each for each in seen if is_risky(*each[1:])] == []


def test_no_source_of_a_pattern_is_risky() -> None:
    """Those too that are compiled later: each piece of text in a module that uses `re`."""
    found = []
    for path, tree in modules_with_patterns():
        for text in (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)):
            source = text.decode("latin-1") if isinstance(text, bytes) else text
            if isinstance(source, str) and _RISKY.search(source):
                found.append((str(path.relative_to(ROOT)), source))
    assert found == []
