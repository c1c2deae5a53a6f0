"""TRUE and FALSE in small letters, and nothing else touched."""

import pytest

from graphdb.sparql.engine_text import engine_text

CASES = {
    "ASK { FILTER(TRUE || False) }": "ASK { FILTER(true || false) }",
    "ASK { FILTER(true) }": "ASK { FILTER(true) }",
    'ASK { ?TRUE <TRUE> "TRUE" } # TRUE': 'ASK { ?TRUE <TRUE> "TRUE" } # TRUE',
    "PREFIX TRUE: <x:> ASK { ?s TRUE:TRUE TRUE }": "PREFIX TRUE: <x:> ASK { ?s TRUE:TRUE true }",
}


@pytest.mark.parametrize(("text", "expected"), CASES.items(), ids=list(CASES))
def test_engine_text(text: str, expected: str) -> None:
    assert engine_text(text) == expected
