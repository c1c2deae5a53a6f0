"""Random mutations against a twin that folds them into a dictionary: the same triples, refusals, answers."""

from time import monotonic
from typing import Any

from graphql import GraphQLError
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyoxigraph import Quad, RdfFormat, Store, parse

from graphdb.config.limits import GateLimits
from graphdb.errors import EditRefused
from graphdb.graphql.editing import EditCheck, EditPlanner, LastChanges
from graphdb.graphql.failures import Limits
from graphdb.graphql.mutations import read_mutation
from graphdb.graphql.planning import read_operation
from graphdb.graphql.schema import schema_of
from graphdb.graphql.schema_triples import SchemaWatch
from graphdb.model import ChangeSet
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.results import ResultFormat, write_answer
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from tests.support.graphql_graph import PREFIXES, model_from

MODEL = """
:Person a owl:Class . :Poet a owl:Class ; rdfs:subClassOf :Person .
:S a sh:NodeShape ; sh:targetClass :Person ; sh:property
    [ sh:path :name ; sh:datatype xsd:string ; sh:minCount 1 ; sh:maxCount 1 ; sh:pattern "^[a-m]" ],
    [ sh:path :age ; sh:datatype xsd:integer ; sh:maxCount 1 ; sh:minInclusive 0 ],
    [ sh:path :nick ; sh:datatype xsd:string ; sh:maxCount 2 ] ,
    [ sh:path :said ; sh:datatype rdf:langString ; sh:uniqueLang true ] .
"""
SCHEMA = schema_of(model_from(MODEL))
TYPES = ("Person", "Poet")
IRIS = [f"http://e/{number}" for number in range(3)]
GRAPHS = (None, "http://g/1")
Key = tuple[str | None, str]
State = dict[Key, dict[str, Any]]
Refusal = frozenset[tuple[int, str]]  # the numbers of fields, and codes


class Node:
    """A store with a log, written by the planner alone."""

    def __init__(self) -> None:
        schema = SchemaWatch()
        self.quads = QuadStore(Store(), (schema,))
        self.quads.apply_many([ChangeSet(added=tuple(self._model()))])
        self.log: list[ChangeSet] = []
        check = EditCheck(
            GateLimits(), monotonic, lambda: schema.state, self._never, union_default_graph=False
        )
        self.planner = EditPlanner(check)

    @staticmethod
    def _model() -> list[Quad]:
        model = f"{PREFIXES} GRAPH <http://g/model> {{ {MODEL} }}"
        return list(parse(model.encode(), RdfFormat.TRIG, rename_blank_nodes=True))

    def _never(self, *_arguments: Any) -> Any:
        raise AssertionError("nothing here takes long")

    def mutate(self, text: str, variables: dict[str, Any]) -> dict[str, Any] | list[GraphQLError]:
        operation = read_operation(SCHEMA, text, variables, None, Limits())
        mutation = read_mutation(operation, "http://new", b"seed", by_shapes=True)
        last = LastChanges(mutation.edits)
        for index, change in enumerate(self.log, 1):
            last.note(index, change)
        try:
            change = self.planner.plan(mutation.edits, Overlay(self.quads), last)
        except EditRefused as refused:
            return mutation.errors(refused)
        if change:
            self.quads.apply(change)
            self.log.append(change)
        made = mutation.answer([self.rows(one) for one in mutation.queries])
        assert made.errors is None, made.errors
        assert made.data is not None
        return made.data

    def rows(self, query: str) -> bytes:
        pieces: list[bytes] = []
        write_answer(self.quads.query(parse_query(query, None), Dataset()), ResultFormat.TSV, pieces.append)
        return b"".join(pieces)

    def state(self) -> State:
        """Asked in SPARQL."""
        found: State = {}
        for graph in GRAPHS:
            pattern = f"GRAPH <{graph}> {{ ?s ?p ?o }}" if graph else "?s ?p ?o"
            for line in self.rows(f"SELECT ?s ?p ?o {{ {pattern} }}").decode().splitlines()[1:]:
                subject, predicate, value = line.split("\t")
                held = found.setdefault((graph, subject[1:-1]), {})
                held.setdefault(predicate[1:-1].rpartition("/")[2].rpartition("#")[2], set()).add(value)
        return found


NAMES = st.sampled_from(["ada", "bea", "zoe"])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "name": NAMES,
    "age": st.integers(-1, 2) | st.none(),
    "nick": st.lists(st.sampled_from("xyz"), max_size=3) | st.none(),
    "said": st.lists(
        st.sampled_from(["plain", {"value": "ja", "lang": "de"}, {"value": "nein", "lang": "de"}]), max_size=2
    ),
}


@st.composite
def fields(draw: st.DrawFn) -> dict[str, Any]:
    what = draw(st.sampled_from(["create", "create", "update", "update", "delete"]))
    wanted = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True))
    if what == "create":
        wanted = ["name", *(one for one in wanted if one != "name")]
    return {
        "what": what,
        "type": draw(st.sampled_from(TYPES)),
        "id": draw(st.sampled_from(IRIS)),
        "graph": draw(st.sampled_from((None, None, *GRAPHS))),
        "since": draw(st.sampled_from([None, None, None, 0, 1, 2])),
        "values": {one: draw(VALUES[one]) for one in wanted},
    }


def written(requested: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The operation, with all that is given in variables."""
    declared: list[str] = []
    selected: list[str] = []
    variables: dict[str, Any] = {}
    for number, one in enumerate(requested):
        common = f"graph: $g{number}, ifSnapshot: $s{number}"
        declared += [f"$g{number}: String", f"$s{number}: SnapshotIndex"]
        variables |= {f"g{number}": one["graph"], f"s{number}": one["since"]}
        verb, kind = one["what"], one["type"]
        if verb == "delete":
            declared.append(f"$i{number}: ID!")
            variables[f"i{number}"] = one["id"]
            selected.append(f"f{number}: delete{kind}(id: $i{number}, {common}) {{ success }}")
            continue
        declared.append(f"$i{number}: {verb.capitalize()}{kind}Input!")
        variables[f"i{number}"] = {"id": one["id"], **one["values"]}
        selected.append(
            f"f{number}: {verb}{kind}(input: $i{number}, {common}) {{ id name age nick said __typename }}"
        )
    return f"mutation ({', '.join(declared)}) {{ {' '.join(selected)} }}", variables


def terms(name: str, given: Any) -> set[str]:
    values = [] if given is None else given if isinstance(given, list) else [given]
    if name == "age":
        return {str(one) for one in values}
    return {f'"{one["value"]}"@{one["lang"]}' if isinstance(one, dict) else f'"{one}"' for one in values}


def folded(before: State, requested: list[dict[str, Any]], changed_at: dict[Key, int]) -> State | Refusal:
    """The state behind a request, or why there is none."""
    state = {key: dict(held) for key, held in before.items()}
    for number, one in enumerate(requested):
        if one["since"] is not None and changed_at.get((one["graph"], one["id"]), 0) > one["since"]:
            return frozenset({(number, "CONFLICT")})
    for number, one in enumerate(requested):
        key = (one["graph"], one["id"])
        held = state.get(key)
        if one["what"] == "create":
            if held is not None:
                return frozenset({(number, "CONFLICT")})
            held = state[key] = {"type": {f"<http://e/{one['type']}>"}}
        elif held is None or not is_a(held, one["type"]):
            return frozenset({(number, "NOT_FOUND")})
        if one["what"] == "delete":
            del state[key]
            continue
        for name, value in one["values"].items():
            held[name] = terms(name, value)
            if not held[name]:
                del held[name]
    numbers = {(one["graph"], one["id"]): number for number, one in enumerate(requested)}
    wrong = {(numbers[key], "VALIDATION_FAILED") for key, held in state.items() if is_wrong(held)}
    if wrong:
        return frozenset(wrong)
    return state


def is_a(held: dict[str, set[str]], kind: str) -> bool:
    """Every Poet is a Person too."""
    return kind == "Person" or held["type"] == {"<http://e/Poet>"}


def is_wrong(held: dict[str, set[str]]) -> bool:
    """What the shapes forbid, said once more."""
    said = held.get("said", set())
    return (
        len(held.get("name", ())) != 1
        or "z" in next(iter(held["name"]))
        or "-1" in held.get("age", ())
        or len(held.get("nick", ())) > 2
        or len(said) > 1  # both in German
        or '"plain"' in said  # in no language
    )


def shown(held: dict[str, set[str]] | None, iri: str) -> dict[str, Any] | None:
    if held is None:
        return None
    kind = next(iter(held["type"]))[len("<http://e/") : -1]
    return {
        "id": iri,
        "name": next(iter(held["name"])).strip('"'),
        "age": int(next(iter(held["age"]))) if "age" in held else None,
        "nick": sorted(one.strip('"') for one in held.get("nick", ())),
        "said": sorted(one.split('"')[1] for one in held.get("said", ())),
        "__typename": "PersonObject" if kind == "Person" else kind,
    }


def asked(what: str, kind: str, values: dict[str, Any]) -> dict[str, Any]:
    """A field that `fields` may draw."""
    return {"what": what, "type": kind, "id": IRIS[0], "graph": None, "since": None, "values": values}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(fields(), min_size=1, max_size=4), min_size=1, max_size=6))
@example(
    [
        [
            asked("create", "Poet", {"name": "ada"}),
            asked("delete", "Person", {}),
            asked("create", "Person", {"name": "ada"}),
        ]
    ]
)
def test_mutations_do_what_their_twin_does(requests: list[list[dict[str, Any]]]) -> None:
    node = Node()
    state: State = {}
    changed_at: dict[Key, int] = {}
    for requested in requests:
        answer = node.mutate(*written(requested))
        after = folded(state, requested, changed_at)
        if isinstance(after, frozenset):
            assert isinstance(answer, list)
            told = {(one.path and one.path[0], (one.extensions or {})["code"]) for one in answer}
            assert told == {(f"f{number}", code) for number, code in after}
        else:
            changed = [key for key in {*state, *after} if state.get(key) != after.get(key)]
            state = after
            changed_at |= dict.fromkeys(changed, len(node.log))
            assert isinstance(answer, dict)
            for number, one in enumerate(requested):
                held = state.get((one["graph"], one["id"]))
                if held is not None and not is_a(held, one["type"]):
                    held = None  # a later field made it again, as another type
                is_deletion = one["what"] == "delete"
                assert answer[f"f{number}"] == ({"success": True} if is_deletion else shown(held, one["id"]))
        assert node.state() == state
