"""The spellings of a search in a query, read as `TextSearch`.

    ?s text:query (rdfs:label "words" 10)            Jena's property function, on the graph's literals
    SERVICE <search:INDEX> { [] search:query "…" ; search:hit [ search:entity ?s ] }
    ?x a inst:INDEX ; con:query "…" ; con:entities ?s     GraphDB's connectors

Each takes its triples out of a basic graph pattern. What a search is given has to stand in the query as
constants: it is evaluated before everything else.

Source: Jena's documentation, "Jena Full Text Search"; GraphDB's, "Elasticsearch GraphDB connector".
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from graphdb.errors import InvalidParameter
from graphdb.sparql.algebra import Algebra, Service, TextSearch, variables_in_scope
from graphdb.sparql.patterns import (
    GroupGraphPattern,
    PatternElement,
    ServicePattern,
    TriplePattern,
    TriplesBlock,
)
from graphdb.sparql.search_requests import (
    CONNECTORS,
    SEARCH,
    TEXT,
    Highlight,
    IndexSearch,
    LiteralSearch,
    Part,
    search_index_of,
)
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, RdfLiteral, Variable
from graphdb.sparql.tree_walk import all_below, nodes_below, renamed

__all__ = ["SearchReader", "with_pattern_apart"]

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_FIRST, _REST, _NIL, _TYPE = _RDF + "first", _RDF + "rest", _RDF + "nil", _RDF + "type"
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_QUERY = TEXT + "query"
_ARGUMENTS = (Part.SUBJECT, Part.SCORE, Part.LITERAL, Part.GRAPH, Part.PROPERTY)
_INSTANCE = re.compile(rf"(?:{'|'.join(map(re.escape, CONNECTORS))})".replace("\\#", "") + r"/instance#(.+)")

_SERVICE = "SERVICE <search:…>"

Triples = tuple[TriplePattern, ...]


def with_pattern_apart(service: ServicePattern) -> ServicePattern | GroupGraphPattern:
    """A search whose braces hold a pattern too as a group: the search, and the pattern beside it."""
    group = service.pattern
    own: list[TriplePattern] = []
    others: list[PatternElement] = []
    for element in group.elements:
        if not isinstance(element, TriplesBlock):
            others.append(element)
            continue
        left = tuple([triple for triple in element.triples if not _is_about_search(triple)])
        own += [triple for triple in element.triples if _is_about_search(triple)]
        if left:
            others.append(replace(element, triples=left))
    if not others:
        return service
    block = TriplesBlock(tuple(own), group.span)
    apart = replace(service, pattern=replace(group, elements=(block,)), is_restricted=True)
    return replace(group, elements=(apart, *others))


def _is_about_search(triple: TriplePattern) -> bool:
    """Whether it describes a search, or is a cell of a list, as vectors are."""
    if isinstance(triple.subject, BlankNodeLabel) and _is_iri(triple.predicate, _FIRST, _REST):
        return True
    return isinstance(triple.predicate, Iri) and triple.predicate.value.startswith(SEARCH)


class SearchReader:
    """Reads the searches of one query. names of variables that the query does not have come from fresh."""

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self._fresh = fresh
        self._count = 0
        self.renamed: dict[BlankNodeLabel, Variable] = {}
        """Blank nodes of the query that hits are bound to, and the variables that stand for them."""

    def taken_from(self, triples: Triples, graph: Iri | Variable | None) -> tuple[list[TextSearch], Triples]:
        """The searches that stand among the triples of a block, and the others of its triples.

        Raises InvalidParameter for a search that cannot be read.
        """
        searches: list[TextSearch] = []
        if any(_is_iri(triple.predicate, _QUERY) for triple in triples):
            block = _Block(triples)
            for triple in [each for each in triples if _is_iri(each.predicate, _QUERY)]:
                block.take(triple)
                searches.append(self._of_literals(block, triple, graph))
            triples = block.rest
        if any(_instance_of(triple) is not None for triple in triples):
            block = _Block(triples)
            for triple in [each for each in triples if _instance_of(each) is not None]:
                block.take(triple)
                searches += self._of_connector(block, triple)
            triples = block.rest
        return searches, triples

    def of_service(
        self, endpoint: Iri | Variable, triples: Triples, within: Algebra | None
    ) -> list[TextSearch]:
        """The search of `SERVICE <search:INDEX>`, within a pattern. Raises InvalidParameter."""
        index = search_index_of(endpoint)
        assert index is not None
        block = _Block(triples)
        heads = [each for each in triples if _is_iri(each.predicate, SEARCH + "query", SEARCH + "knn")]
        subjects = list(dict.fromkeys(each.subject for each in heads))
        if len(subjects) != 1:
            _refuse(_SERVICE, "needs one subject with search:query or search:knn")
        made = _ServiceSearch(block, subjects[0], index).read()
        if block.rest:
            _refuse(_SERVICE, f"has a triple that is not about its search: {_shown(block.rest[0])}")
        found = [self._search(request, None, parts) for request, parts in made]
        return found if within is None else [self._restricted(each, within) for each in found]

    def _restricted(self, search: TextSearch, within: Algebra) -> TextSearch:
        """Raises InvalidParameter for a pattern that cannot restrict it."""
        if any(isinstance(node, Service | TextSearch) for node in nodes_below(within)):
            _refuse(_SERVICE, "has another search or SERVICE in its braces")
        within = renamed(within, self.renamed)
        search = replace(search, within=within)
        if search.entity is None or search.entity.name not in variables_in_scope(within):
            _refuse(
                _SERVICE,
                "has a pattern in its braces, which has to be about the variable of search:entity. What is "
                "not to restrict the search stands outside",
            )
        names = {node.name for node in all_below(within) if isinstance(node, Variable)}
        for _, variable in search.columns:
            if variable != search.entity and variable.name in names:
                _refuse(
                    _SERVICE,
                    f"has ?{variable.name} in the pattern in its braces; of a hit this knows search:entity "
                    "alone. Filters on other parts of hits stand outside",
                )
        return search

    def _of_literals(
        self, block: "_Block", triple: TriplePattern, graph: Iri | Variable | None
    ) -> TextSearch:
        subjects = block.list_of(triple.subject)
        arguments = block.list_of(triple.object)
        ends = [triple.subject] if subjects is None else subjects
        given = [triple.object] if arguments is None else arguments
        if not 1 <= len(ends) <= len(_ARGUMENTS):
            _refuse(
                "text:query", "its subject is a term or a list of up to (?s ?score ?literal ?graph ?property)"
            )
        if subjects is not None and block.of(triple.subject):
            _refuse("text:query", "its list is the subject of other triples too; write them apart, about ?s")
        request = _literal_search(given)
        return self._search(request, graph, list(zip(_ARGUMENTS, ends, strict=False)))

    def _of_connector(self, block: "_Block", triple: TriplePattern) -> Iterator[TextSearch]:
        index = _instance_of(triple)
        assert index is not None
        made = _ConnectorSearch(block, triple.subject, index).read()
        for request, parts in made:
            yield self._search(request, None, parts)

    def _search(
        self,
        request: LiteralSearch | IndexSearch,
        graph: Iri | Variable | None,
        parts: Sequence[tuple[str, PatternTerm]],
    ) -> TextSearch:
        columns: dict[Variable, str] = {}
        fixed: list[tuple[str, Iri | RdfLiteral]] = []
        for part, term in parts:
            if isinstance(term, BlankNodeLabel):
                term = self.renamed.setdefault(term, Variable(self._fresh("hit")))
            if isinstance(term, Variable):
                if term in columns:
                    _refuse("a search", f"binds ?{term.name} twice")
                columns[term] = part
            elif isinstance(term, Iri | RdfLiteral):
                fixed.append((part, term))
            else:
                _refuse("a search", "binds variables, and compares with IRIs and literals only")
        if isinstance(graph, Variable) and graph not in columns:
            columns[graph] = Part.GRAPH
        self._count += 1
        pairs = tuple((part, variable) for variable, part in columns.items())
        return TextSearch(f"search{self._count}", request, graph, pairs, tuple(fixed))


class _Block:
    """The triples of a block, of which those of searches are taken."""

    def __init__(self, triples: Triples) -> None:
        self._left = list(triples)

    @property
    def rest(self) -> Triples:
        return tuple(self._left)

    def take(self, triple: TriplePattern) -> None:
        self._left = [each for each in self._left if each is not triple]

    def of(self, subject: PatternTerm) -> list[TriplePattern]:
        return [each for each in self._left if each.subject == subject]

    def list_of(self, head: PatternTerm) -> list[PatternTerm] | None:
        """The members of a list, whose triples are taken; None where a term is not the head of one."""
        if _is_iri(head, _NIL):
            return []
        if not isinstance(head, BlankNodeLabel):
            return None
        members: list[PatternTerm] = []
        while not _is_iri(head, _NIL):
            cell = {each.predicate.value: each for each in self.of(head) if isinstance(each.predicate, Iri)}
            if not cell.keys() >= {_FIRST, _REST}:
                return None
            first, rest = cell[_FIRST], cell[_REST]
            self.take(first)
            self.take(rest)
            members.append(first.object)
            head = rest.object
        return members


# Jena's.

_LIMIT_MAX = 2**31 - 1


def _literal_search(arguments: Sequence[PatternTerm]) -> LiteralSearch:
    """([property ...] text [limit] ["lang:xx"] ["highlight:..."])"""
    left = list(arguments)
    properties: list[str] = []
    while left and isinstance(left[0], Iri):
        properties.append(left.pop(0).value)  # type: ignore[union-attr]
    if not left or not isinstance(left[0], RdfLiteral):
        what = "a variable" if left and isinstance(left[0], Variable) else "no text"
        _refuse("text:query", f"is given {what} to look for; it has to stand in the query as a literal")
    text = left.pop(0)
    assert isinstance(text, RdfLiteral)
    made = LiteralSearch(tuple(dict.fromkeys(properties)), text.value, language=_lowered(text.language))
    if left and isinstance(left[0], RdfLiteral) and left[0].datatype == _INTEGER:
        limit = int(left.pop(0).value)  # type: ignore[union-attr]
        made = replace(made, limit=min(limit, _LIMIT_MAX) if limit >= 0 else None)
    for option in left:
        made = _with_option(made, option)
    return made


def _with_option(made: LiteralSearch, option: PatternTerm) -> LiteralSearch:
    if isinstance(option, RdfLiteral):
        name, _, value = option.value.partition(":")
        if name == "lang":
            return replace(made, language=_lowered(value))
        if name == "highlight":
            return replace(made, highlight=_highlight(value))
    _refuse(
        "text:query", f'is given {_shown(option)}; behind the text come a limit, "lang:…" and "highlight:…"'
    )


def _lowered(language: str | None) -> str | None:
    return None if language is None or language == "*" else language.lower()


def _highlight(text: str) -> Highlight:
    """Jena's options, `key:value` with | between two."""
    made = Highlight()
    for option in filter(None, (each.strip() for each in text.split("|"))):
        key, _, value = option.partition(":")
        match key:
            case "s":
                made = replace(made, start=value)
            case "e":
                made = replace(made, end=value)
            case "f":
                made = replace(made, separator=value)
            case "m" if value.isdecimal():
                made = replace(made, fragments=int(value))
            case "z" if value.isdecimal():
                made = replace(made, fragment_size=int(value))
            case "jh":
                made = replace(made, joins=value != "n")
            case "jf":
                made = replace(made, separator="" if value == "n" else made.separator)
            case _:
                _refuse("text:query", f"has the unknown option {option!r} of highlight")
    return made


# The service's, and the connectors'.

_Made = list[tuple[LiteralSearch | IndexSearch, list[tuple[str, PatternTerm]]]]
_WHOLE_BODIES = frozenset(
    {"query", "knn", "retriever", "rank", "sort", "size", "from", "post_filter", "_ext"}
)


class _Description:
    """What triples with one subject say, by the local names of their properties in a namespace."""

    def __init__(self, block: _Block, subject: PatternTerm, namespaces: Sequence[str], where: str) -> None:
        self._where = where
        self._given: dict[str, list[PatternTerm]] = {}
        for triple in block.of(subject):
            name = _local_name(triple.predicate, namespaces)
            if name is None:
                continue
            block.take(triple)
            self._given.setdefault(name, []).append(triple.object)

    def one(self, name: str) -> PatternTerm | None:
        found = self._given.pop(name, [])
        if len(found) > 1:
            _refuse(self._where, f"has {name} twice")
        return found[0] if found else None

    def all(self, name: str) -> list[PatternTerm]:
        return self._given.pop(name, [])

    def text(self, name: str) -> str | None:
        found = self.one(name)
        if found is None or isinstance(found, RdfLiteral):
            return None if found is None else found.value
        _refuse(self._where, f"needs {name} as a literal that stands in the query")

    def number(self, name: str) -> int | None:
        text = self.text(name)
        if text is None or text.isdecimal():
            return None if text is None else min(int(text), _LIMIT_MAX)
        _refuse(self._where, f"needs {name} as a whole number, not {text!r}")

    def done(self) -> None:
        for name in self._given:
            _refuse(self._where, f"does not know the property {name}")


class _ServiceSearch:
    """See `docs/search.md`, "Searches within SPARQL"."""

    _WHERE = _SERVICE

    def __init__(self, block: _Block, subject: PatternTerm, index: str) -> None:
        self._block, self._index = block, index
        self._about = _Description(block, subject, (SEARCH,), self._WHERE)

    def read(self) -> _Made:
        about = self._about
        body = _body_of(about.text("query"), self._WHERE)
        like = self._knn(body)
        limit, offset = about.number("limit"), about.number("offset") or 0
        total = about.one("totalHits")
        hits = about.all("hit")
        about.done()
        if len(hits) > 1:
            _refuse(self._WHERE, "has search:hit twice")
        parts: list[tuple[str, PatternTerm]] = [] if total is None else [(Part.TOTAL, total)]
        if hits:
            parts += self._parts(hits[0])
        if any(part in (Part.HIGHLIGHT, Part.FIELD) for part, _ in parts):
            body.setdefault("highlight", {"fields": {"*": {}}})
        return [(IndexSearch(self._index, _dumped(body), limit, offset, like), parts)]

    def _knn(self, body: dict[str, Any]) -> str | None:
        about = self._about
        vector = about.one("knn")
        field, k = about.text("field"), about.number("k")
        candidates, similarity = about.number("numCandidates"), about.text("similarity")
        if vector is None:
            if field is not None or k is not None:
                _refuse(self._WHERE, "has search:field or search:k without search:knn")
            return None
        if field is None:
            _refuse(self._WHERE, "needs search:field, the field of vectors, beside search:knn")
        knn: dict[str, Any] = {"field": field, "k": k or 10}
        knn["num_candidates"] = candidates or max(100, knn["k"])
        if similarity is not None:
            knn["similarity"] = _number(similarity, self._WHERE)
        body["knn"] = knn
        if isinstance(vector, Iri) and vector.value != _NIL:
            return vector.value
        knn["query_vector"] = self._vector(vector)
        return None

    def _vector(self, term: PatternTerm) -> list[float]:
        members = self._block.list_of(term)
        if members is not None:
            texts = [each.value for each in members if isinstance(each, RdfLiteral)]
            if len(texts) == len(members):
                return [_number(text, self._WHERE) for text in texts]
        if isinstance(term, RdfLiteral):
            found = _json(term.value, self._WHERE)
            if isinstance(found, list) and all(isinstance(each, int | float) for each in found):
                return [float(each) for each in found]
        _refuse(self._WHERE, "needs search:knn as a list of numbers, as JSON of one, or as a resource")

    def _parts(self, hit: PatternTerm) -> list[tuple[str, PatternTerm]]:
        about = _Description(self._block, hit, (SEARCH,), self._WHERE)
        names = {
            "entity": Part.SUBJECT,
            "score": Part.SCORE,
            "id": Part.ID,
            "index": Part.INDEX,
            "source": Part.SOURCE,
            "highlight": Part.HIGHLIGHT,
            "highlightField": Part.FIELD,
        }
        found = [(part, about.one(name)) for name, part in names.items()]
        about.done()
        return [(part, term) for part, term in found if term is not None]


class _ConnectorSearch:
    """GraphDB's: `?x a inst:INDEX ; con:query "…" ; con:entities ?s . ?s con:score ?score`."""

    _WHERE = "a connector's query"

    def __init__(self, block: _Block, subject: PatternTerm, index: str) -> None:
        self._block, self._index = block, index
        self._about = _Description(block, subject, CONNECTORS, self._WHERE)

    def read(self) -> _Made:
        about = self._about
        body = _body_of(about.text("query"), self._WHERE)
        limit, offset = about.number("limit"), about.number("offset") or 0
        order = about.text("orderBy")
        if order is not None:
            body["sort"] = [_sort_of(each.strip()) for each in order.split(",")]
        total, entities = about.one("totalHits"), about.one("entities")
        about.done()
        parts: list[tuple[str, PatternTerm]] = [] if total is None else [(Part.TOTAL, total)]
        if entities is not None:
            parts.append((Part.SUBJECT, entities))
            parts += self._of_entities(entities, body)
        return [(IndexSearch(self._index, _dumped(body), limit, offset), parts)]

    def _of_entities(self, entities: PatternTerm, body: dict[str, Any]) -> Iterator[tuple[str, PatternTerm]]:
        about = _Description(self._block, entities, CONNECTORS, self._WHERE)
        score, snippets = about.one("score"), about.one("snippets")
        about.done()
        if score is not None:
            yield Part.SCORE, score
        if snippets is not None:
            body["highlight"] = {"fields": {"*": {}}}
            each = _Description(self._block, snippets, CONNECTORS, self._WHERE)
            field, text = each.one("snippetField"), each.one("snippetText")
            each.done()
            if field is not None:
                yield Part.FIELD, field
            if text is not None:
                yield Part.HIGHLIGHT, text


def _body_of(text: str | None, where: str) -> dict[str, Any]:
    """The body of a search, of a query string, of the JSON of a query, or of that of a whole body."""
    if text is None:
        return {}
    if not text.lstrip().startswith("{"):
        return {"query": {"query_string": {"query": text}}}
    body = _json(text, where)
    return dict(body) if body.keys() & _WHOLE_BODIES else {"query": body}


def _sort_of(text: str) -> dict[str, str]:
    return {text.removeprefix("-"): "desc" if text.startswith("-") else "asc"}


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        _refuse(where, f"has JSON that cannot be read: {error}")


def _dumped(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        _refuse(where, f"has {text!r} where a number is needed")


def _instance_of(triple: TriplePattern) -> str | None:
    """The index that a triple says a search of a connector is in."""
    if not _is_iri(triple.predicate, _TYPE) or not isinstance(triple.object, Iri):
        return None
    found = _INSTANCE.fullmatch(triple.object.value)
    return None if found is None else found[1]


def _local_name(predicate: object, namespaces: Sequence[str]) -> str | None:
    if isinstance(predicate, Iri):
        for namespace in namespaces:
            if predicate.value.startswith(namespace):
                return predicate.value.removeprefix(namespace)
    return None


def _is_iri(term: object, *values: str) -> bool:
    return isinstance(term, Iri) and term.value in values


def _shown(term: object) -> str:
    match term:
        case Iri(value=value):
            return f"<{value}>"
        case RdfLiteral(value=value):
            return repr(value)
        case Variable(name=name):
            return f"?{name}"
        case TriplePattern():
            return " ".join(map(_shown, (term.subject, term.predicate, term.object)))
    return "[]"


def _refuse(where: str, reason: str) -> NoReturn:
    raise InvalidParameter(where, reason)
