"""A statement as the live query that it asks for."""

from graphdb.config.limits import GateLimits
from graphdb.live.matcher import LiveQuery
from graphdb.live.solution_reading import read_solution_query
from graphdb.live.statement import SparqlText, read_statement

__all__ = ["read_live_query"]


def read_live_query(text: str, limits: GateLimits) -> LiveQuery:
    """Raises QuerySyntaxError, LimitExceeded, EvaluationFailed."""
    statement = read_statement(text)
    if isinstance(statement, SparqlText):
        return read_solution_query(statement.text, limits)
    return statement
