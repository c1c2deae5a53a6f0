"""Types that are found in the data alone."""

from pyoxigraph import QueryResultsFormat, QuerySolutions, Store

from graphdb.config.limits import GateLimits
from graphdb.graphql.model import Field, Model, Reference, Scalar
from graphdb.graphql.modelling import model_of
from graphdb.graphql.schema_sources import CLASSES, classes_of, inferred, samples
from graphdb.planning.gate import check, read_query
from tests.support.graphql_graph import PREFIXES


def model_of_data(data: str) -> Model:
    store = Store()
    store.update(f"{PREFIXES} INSERT DATA {{ {data} }}")

    def ask(query: str) -> bytes:
        check(read_query(query, None, GateLimits()), GateLimits())
        found = store.query(query)
        assert isinstance(found, QuerySolutions)
        return found.serialize(format=QueryResultsFormat.TSV) or b""

    classes = classes_of(ask(CLASSES))
    return model_of(inferred(classes, map(ask, samples(classes))))


def kinds(fields: dict[str, Field]) -> dict[str, object]:
    return {name: one.value for name, one in fields.items()}


def test_what_resources_have() -> None:
    model = model_of_data(
        ":a a :P ; :age 1 ; :friend :b ; :mixed 1, 'x' ; :page <http://x/> . "
        ":b a :Q ; :label 'x'@en . :c :age 2 ."
    )
    assert set(model.types) == {"P", "Q"}
    assert kinds(dict(model.types["P"].fields)) == {
        "age": Scalar.INT,
        "friend": Reference("Q"),
        "mixed": Scalar.STRING,
        "page": Scalar.ID,
    }
    assert model.types["Q"].fields["label"].takes_language


def test_many_classes_are_asked_for_in_several_queries() -> None:
    data = " ".join(f":r{number} a :C{number} ; :p{number} 1 ." for number in range(45))
    model = model_of_data(data)
    assert len(model.types) == 45
    assert set(model.types["C44"].fields) == {"p44"}


def test_no_data() -> None:
    assert model_of_data("").types == {}
