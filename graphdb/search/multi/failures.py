"""Whose fault it is: the request's, which no index could answer, or one index's, with another mapping."""

import re

from graphdb.search.errors import SearchError

__all__ = ["is_of_request"]

# Elasticsearch reads a body before it knows which indexes are asked; then shards meet their mappings.
_OF_REQUEST = frozenset(
    {
        "action_request_validation_exception",
        "parsing_exception",
        "search_phase_execution_exception",
        "security_exception",
        "sparql_exception",
        "x_content_parse_exception",
    }
)
_OF_BODY = re.compile(
    r"\[(from|size|boost|sort|track_total_hits|terminate_after|interval|sigma|scroll|slice|collapse|suggest|"
    r"script_fields|runtime_mappings|max|id|_ext|format|kg_boost|sparql_\w+)\]|"
    r"\[\w+\] (query lookup|requires|must be greater)|"
    r"Values must|Sort must|search_after has|negative \[boost\]|value cannot be null|field name is null|"
    r"illegal score_mode|query malformed|No value specified|Required|malformed sort|Unknown SortMode|No enum"
)


def is_of_request(error: SearchError) -> bool:
    """Whether an error would be the same for every index."""
    if error.kind in _OF_REQUEST or error.status >= 500:
        return True
    return error.kind == "illegal_argument_exception" and _OF_BODY.match(error.reason) is not None
