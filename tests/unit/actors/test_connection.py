"""What `graphdb.connect()` says of answers, apart from the service that gives them."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from actors.connection import Connection, PurgedPast
from actors.service_files import RunFile


class Answered(Connection):
    """A service whose every answer is the same."""

    def __init__(self, body: bytes, purged_index: int | None) -> None:
        super().__init__(RunFile.__new__(RunFile), None)
        self._answer = body, purged_index

    def _call(self, method: str, *arguments: object) -> Any:
        return self._answer


@pytest.mark.parametrize(
    ("body", "ask"),
    [
        (b'{"head":{},"boolean":true}', lambda service: service.ask("ASK {}", as_of=3)),
        (b'{"conforms":true}', lambda service: service.validate(as_of=3)),
    ],
)
def test_a_state_before_a_purge_warns_where_it_was_asked_for(
    body: bytes, ask: Callable[[Connection], object]
) -> None:
    with pytest.warns(PurgedPast, match="purged at log index 7") as told:
        assert ask(Answered(body, 7))
    assert [warning.filename for warning in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask(Answered(body, None))
