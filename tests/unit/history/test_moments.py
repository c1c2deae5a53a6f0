"""Moments: what is read as one, and what is refused."""

from datetime import datetime

import pytest

from graphdb.errors import InvalidParameter
from graphdb.history.moments import moment_of_query, read_moment
from graphdb.sparql.dataset import own_dataset
from graphdb.sparql.parser import parse_query


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-11-27T08:00:00Z", "2026-11-27T08:00:00+00:00"),
        ("2026-11-27t08:00:00z", "2026-11-27T08:00:00+00:00"),
        ("2026-11-27T08:00:00.25Z", "2026-11-27T08:00:00.250+00:00"),
        ("2026-11-27T08:00:00.123456Z", "2026-11-27T08:00:00.123+00:00"),
        ("2026-11-27T08:00:00-05:30", "2026-11-27T13:30:00+00:00"),
        ("1969-12-31T23:59:59.500Z", "1969-12-31T23:59:59.500+00:00"),
    ],
)
def test_times(text: str, same: str) -> None:
    moment = read_moment(text)
    assert moment.log_index is None
    assert moment.time_ms == round(datetime.fromisoformat(same).timestamp() * 1000)
    assert str(moment) == text


@pytest.mark.parametrize("text", ["0", "1", "007", "9" * 18])
def test_indexes(text: str) -> None:
    assert read_moment(text).log_index == int(text)


NO_MOMENTS = """
-1 +1 1.0 1e3 ٣ now 2026-11-27 2026-11-27T08:00Z 2026-11-27T08:00:00 2026-02-30T00:00:00Z 2026-11-27T08:00:60Z
2026-11-27T24:00:00Z 2026-11-27T08:00:00+24:00 0001-01-01T00:00:00+01:00 2026-11-27T08:00:00.Z
"""


@pytest.mark.parametrize("text", [*NO_MOMENTS.split(), "", " 1", "9" * 19, "x" * 10_000])
def test_what_is_none(text: str) -> None:
    with pytest.raises(InvalidParameter, match="as_of") as refused:
        read_moment(text)
    assert len(str(refused.value)) < 300


def test_a_plus_that_became_a_space_is_explained() -> None:
    with pytest.raises(InvalidParameter, match="%2B"):
        read_moment("2026-11-27T08:00:00 01:00")


def test_the_state_is_no_graph_of_the_dataset() -> None:
    query = parse_query("SELECT * FROM <urn:g> FROM <as-of:7> FROM NAMED <urn:h> { ?s ?p ?o }", None)
    moment = moment_of_query(query)
    assert moment is not None
    assert moment.log_index == 7
    assert [graph.value for graph in own_dataset(query).graphs] == ["urn:g", "urn:h"]
    assert moment_of_query(parse_query("SELECT * FROM <urn:g> { ?s ?p ?o }", None)) is None


def test_a_graph_whose_name_is_that_of_no_state_is_told_where_it_is_read() -> None:
    with pytest.raises(InvalidParameter, match="GRAPH reads a graph of that name"):
        moment_of_query(parse_query("SELECT * FROM <as-of:a/b> { ?s ?p ?o }", None))
