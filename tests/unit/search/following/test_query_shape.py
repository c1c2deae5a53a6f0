"""Which queries an index can follow."""

import pytest

from graphdb.config import Settings
from graphdb.search.errors import SearchError
from graphdb.search.following.query_shape import QueryShape

LIMITS = Settings().security
PATTERN = "{ ?id <urn:title> ?title }"


def test_a_query_of_the_present_is_followed() -> None:
    QueryShape(f"SELECT ?id ?title FROM <urn:g> {PATTERN}", LIMITS)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"SELECT ?id ?title FROM <as-of:7> {PATTERN}", "a state of the past is not read here"),
        (f"SELECT ?id ?title FROM <urn:g> FROM <as-of:2026-11-27T08:00:00Z> {PATTERN}", "the past"),
        (f"SELECT ?id ?title FROM NAMED <as-of:yesterday> {PATTERN}", "the past"),
        (f"ASK {PATTERN}", "must be a SELECT"),
        (f"SELECT ?id (RAND() AS ?r) {PATTERN}", "of chance"),
    ],
)
def test_what_is_refused(text: str, told: str) -> None:
    with pytest.raises(SearchError, match=told):
        QueryShape(text, LIMITS)
