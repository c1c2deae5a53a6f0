"""`Script`: one script of a request, compiled; run on the documents of a leaf, or on given values."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_request, parsing
from graphdb.search.leaf_reader import Bools, Doubles, Floats, Leaf, Longs
from graphdb.search.mapping.lookup import FieldLookup
from graphdb.search.scripts.columnar import NotColumnar, evaluated, single_expression
from graphdb.search.scripts.documents import DOC_FUNCTIONS, Documents
from graphdb.search.scripts.expressions import as_painless
from graphdb.search.scripts.faults import ScriptFault, class_cast, script_error
from graphdb.search.scripts.interpreter import Program, compiled
from graphdb.search.scripts.parser import SOURCE_MAX, Node, parse
from graphdb.search.scripts.scoring import SCORING_FUNCTIONS, of_document
from graphdb.search.scripts.values import Budget, text_of, type_name

__all__ = [
    "AGGREGATION",
    "EMITTED_MAX",
    "FIELD",
    "FILTER",
    "INGEST",
    "LANGUAGES",
    "METRIC_COMBINE",
    "METRIC_INIT",
    "METRIC_MAP",
    "METRIC_REDUCE",
    "RUNTIME",
    "SCORE",
    "SORT",
    "UPDATE",
    "VALUES",
    "LeafScript",
    "Purpose",
    "Script",
    "check_stored",
    "parse_script",
]

LANGUAGES = ("painless", "expression")
_MEMBERS = {"source", "inline", "id", "lang", "params", "options"}
EMITTED_MAX = 100
"""Values that a script of a runtime field emits for one document."""

_CHECKED_DOCS = 64  # between two looks at the deadline


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a script is for. names: what it finds by name; functions: which of them it may call."""

    name: str
    names: frozenset[str]
    functions: frozenset[str] = frozenset()


_SCORING = frozenset({*DOC_FUNCTIONS, *SCORING_FUNCTIONS, "randomScore"})
_READING = frozenset({"field", "$"})
SCORE = Purpose("score", frozenset({"doc", "params", "_score"}), _SCORING | _READING)
FILTER = Purpose("filter", frozenset({"doc", "params"}), _READING)
SORT = Purpose("sort", frozenset({"doc", "params", "_score"}), _SCORING | _READING)
FIELD = Purpose("field", frozenset({"doc", "params"}), _READING)
RUNTIME = Purpose("runtime", frozenset({"doc", "params"}), _READING | {"emit"})
VALUES = Purpose("values", frozenset({"params"}))
AGGREGATION = Purpose("aggs", frozenset({"doc", "params", "_value", "_score"}), _READING)
METRIC_INIT = Purpose("aggs_init", frozenset({"params", "state"}))
METRIC_MAP = Purpose("aggs_map", frozenset({"doc", "params", "state", "_score"}), _READING)
METRIC_COMBINE = Purpose("aggs_combine", frozenset({"params", "state"}))
METRIC_REDUCE = Purpose("aggs_reduce", frozenset({"params", "states"}))
UPDATE = Purpose("update", frozenset({"ctx", "params"}))
INGEST = Purpose("ingest", frozenset({"ctx", "params"}))


@dataclass(frozen=True, slots=True)
class _Compiled:
    program: Program
    expression: Node | None
    reads_source: bool


@lru_cache(maxsize=512)
def _compiled(source: str, lang: str, purpose: Purpose) -> _Compiled:
    """Raises SearchError: script_exception."""
    try:
        tree = parse(source)
        if lang == "expression":
            tree = as_painless(tree)
        program = compiled(tree, purpose.names | purpose.functions, purpose.functions)
        return _Compiled(program, single_expression(tree), _reads_source(tree))
    except ScriptFault as fault:
        raise script_error(source, lang, fault, is_compiling=True) from None
    except RecursionError:
        deep = ScriptFault("illegal_argument_exception", "the script is nested too deeply")
        raise script_error(source, lang, deep, is_compiling=True) from None


def _reads_source(tree: Node) -> bool:
    """Whether it says `_source` anywhere, as `params._source` does."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if "_source" in node.parts:
            return True
        pending += node.nodes
    return False


def parse_script(body: Any, purpose: Purpose) -> "Script":
    """A text, or an object with `source`, `lang` and `params`. Raises SearchError, also where it does not
    compile. A stored script has been put in its place before (`stored.py`).
    """
    given: Mapping[str, Any] = {"source": body} if isinstance(body, str) else body
    if not isinstance(given, Mapping):
        raise parsing("[script] must be a string or an object")
    for name in given:
        if name not in _MEMBERS:
            raise parsing(f"[script] unknown field [{name[:100]}]")
    lang, params = given.get("lang", "painless"), given.get("params")
    params = {} if params is None else params
    if given.get("id") is not None:
        if given.get("source") is not None:
            raise illegal_request("illegal to specify both an [id] and a [source] for a script")
        reason = f"unable to find script [{str(given['id'])[:200]}] in cluster state"
        raise SearchError("resource_not_found_exception", reason, 404)
    source = given.get("source", given.get("inline"))
    if source is None:
        raise illegal_request("must specify either [source] for an inline script or [id] for a stored script")
    if not isinstance(source, str) or not source:
        raise illegal_request("[source] of a script must be a string that is not empty")
    if not isinstance(params, Mapping):
        raise parsing("[script] [params] must be an object")
    if lang not in LANGUAGES:
        raise illegal_request(f"script_lang not supported [{str(lang)[:100]}]")
    if len(source) > SOURCE_MAX:
        raise illegal_request(
            f"exceeded max allowed inline script size in bytes [{SOURCE_MAX}] with size [{len(source)}]"
        )
    made = Script(source, str(lang), dict(params), purpose)
    made.check()
    return made


def check_stored(source: str, lang: str) -> None:
    """Raises SearchError where a script compiles for no purpose."""
    for purpose in (SCORE, UPDATE):
        try:
            Script(source, lang, {}, purpose).check()
        except SearchError:
            continue
        return
    every = SCORE.names | UPDATE.names
    Script(source, lang, {}, Purpose("any", every, SCORE.functions)).check()


@dataclass(frozen=True, slots=True)
class Script:
    """Compiled when it is first used, and kept."""

    source: str
    lang: str = "painless"
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    purpose: Purpose = SCORE

    def check(self) -> None:
        """Raises SearchError where it does not compile."""
        _compiled(self.source, self.lang, self.purpose)

    def __str__(self) -> str:
        return f"Script{{type=inline, lang='{self.lang}', idOrCode='{self.source}'}}"

    @property
    def needs_scores(self) -> bool:
        """Whether it reads `_score`."""
        return "_score" in _compiled(self.source, self.lang, self.purpose).program.names

    def error(self, fault: ScriptFault) -> SearchError:
        """What the client gets of a fault while it runs."""
        return script_error(self.source, self.lang, fault, is_compiling=False)

    def run(self, names: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """Once, with these values by name. Its params are a copy. budget: of this run and others.

        Raises SearchError.
        """
        try:
            program = _compiled(self.source, self.lang, self.purpose).program
            return program.run({"params": deepcopy(dict(self.params)), **names}, budget)
        except ScriptFault as fault:
            raise self.error(fault) from None

    # On the documents of a leaf.

    def on(self, leaf: Leaf, mapping: FieldLookup, index_name: str) -> "LeafScript":
        return LeafScript(self, Documents(leaf, mapping, index_name))


class LeafScript:
    """A script and the documents of one leaf; for one thread. What it does to `params` others do not see."""

    def __init__(self, script: Script, documents: Documents) -> None:
        self._script, self._documents = script, documents
        self._made = _compiled(script.source, script.lang, script.purpose)

    def numbers(self, docs: Longs, scores: Floats | None = None) -> Doubles:
        """One for each of these documents of the leaf. scores: of all documents of the leaf.

        Raises SearchError, also where the script returns no number.
        """
        found = self._found(docs, scores)
        if isinstance(found, list):
            try:
                found = np.array([_double(value) for value in found], np.float64)
            except ScriptFault as fault:
                raise self._script.error(fault) from None
        elif _kind(found) == "b":
            raise self._script.error(class_cast("Cannot cast from [boolean] to [double]."))
        return np.broadcast_to(np.asarray(found, np.float64), (len(docs),))

    def truths(self, docs: Longs, scores: Floats | None = None) -> Bools:
        """As `numbers`, of a script that returns booleans."""
        found = self._found(docs, scores)
        is_wrong = (
            any(not isinstance(value, bool) for value in found)
            if isinstance(found, list)
            else _kind(found) != "b"
        )
        if is_wrong:
            raise self._script.error(class_cast("Cannot cast from [def] to [boolean]."))
        return np.broadcast_to(np.asarray(found, np.bool_), (len(docs),))

    def texts(self, docs: Longs, scores: Floats | None = None) -> list[str]:
        """As `numbers`, of a script that returns strings."""
        budget = Budget()
        try:
            return [text_of(value, budget) for value in self.values(docs, scores)]
        except ScriptFault as fault:
            raise self._script.error(fault) from None

    def values(
        self, docs: Longs, scores: Floats | None = None, given: Mapping[str, Sequence[Any]] | None = None
    ) -> list[Any]:
        """As `numbers`, of a script that returns anything. given: see `runs`."""
        if given is not None:
            try:
                return [run() for run in self.runs(docs, scores, given)]
            except ScriptFault as fault:
                raise self._script.error(fault) from None
        found = self._found(docs, scores)
        if isinstance(found, list):
            return found
        listed: list[Any] = np.broadcast_to(np.asarray(found), (len(docs),)).tolist()
        return listed

    def emitted(self, docs: Longs, path: str) -> Iterator[list[Any]]:
        """What the script of a runtime field, called path, emits for each of these documents.

        A value is what `emit` is called with, a tuple where it is called with several. Raises SearchError.
        """
        values: list[Any] = []

        def emit(*given: Any) -> None:
            if len(values) >= EMITTED_MAX:
                reason = f"Runtime field [{path}] is emitting more than the maximum of [{EMITTED_MAX}] values"
                raise ScriptFault("illegal_argument_exception", reason)
            values.append(given[0] if len(given) == 1 else given)

        for run in self._runs(docs, None, {"emit": emit}, {}):
            try:
                run()
            except ScriptFault as fault:
                raise self._script.error(fault) from None
            yield values.copy()
            values.clear()

    def _found(self, docs: Longs, scores: Floats | None) -> Any:
        """An array or one value of all, or a list."""
        try:
            if self._made.expression is not None and len(docs):
                try:
                    params = self._script.params
                    return evaluated(self._made.expression, self._documents, docs, scores, params)
                except NotColumnar:
                    pass
            return self._interpreted(docs, scores)
        except ScriptFault as fault:
            raise self._script.error(fault) from None

    def _interpreted(self, docs: Longs, scores: Floats | None) -> list[Any]:
        return [run() for run in self._runs(docs, scores, SCORING_FUNCTIONS, {})]

    def runs(
        self, docs: Longs, scores: Floats | None, given: Mapping[str, Sequence[Any]]
    ) -> Iterator[Callable[..., Any]]:
        """What runs the script once, for each of these documents in turn; it takes the budget of the run, and
        raises ScriptFault. A document may come several times. given: what the script finds by name, by the
        place of the document.
        """
        return self._runs(docs, scores, {}, given)

    def _runs(
        self,
        docs: Longs,
        scores: Floats | None,
        functions: Mapping[str, Any],
        given: Mapping[str, Sequence[Any]],
    ) -> Iterator[Callable[..., Any]]:
        documents, program = self._documents, self._made.program
        params = deepcopy(dict(self._script.params))
        names: dict[str, Any] = {"doc": documents, "params": params, **functions}
        if self._script.purpose.functions:
            names.update(documents.functions() | of_document(documents))
        segment = documents.leaf.segment

        def run(budget: Budget | None = None) -> Any:
            return program.run(names, budget)

        for place, doc in enumerate(docs.tolist()):
            if place % _CHECKED_DOCS == 0:
                checkpoint()
            documents.at = doc
            if scores is not None:
                names["_score"] = float(scores[doc])
            if self._made.reads_source:
                params["_source"] = orjson.loads(segment.source(doc))
            for name, values in given.items():
                names[name] = values[place]
            yield run


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise class_cast(f"Cannot cast from [{type_name(value)}] to [double].")
    return float(value)


def _kind(value: Any) -> str:
    return str(np.asarray(value).dtype.kind)
