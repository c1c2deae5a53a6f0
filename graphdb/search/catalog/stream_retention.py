"""What the lifecycle of a data stream may say, in templates too."""

from collections.abc import Mapping
from typing import Any

from graphdb.search.catalog.index_settings import duration_ms
from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["checked_stream_lifecycle"]

_MEMBERS = ("data_retention", "downsampling", "enabled")


def checked_stream_lifecycle(given: Any) -> dict[str, Any]:
    """As it is kept. Errors: x_content_parse_exception, illegal_argument_exception."""
    if not isinstance(given, Mapping):
        raise SearchError("x_content_parse_exception", "[data_stream_lifecycle] must be an object")
    for name in given:
        if name not in _MEMBERS:
            raise SearchError("x_content_parse_exception", f"[lifecycle] unknown field [{name[:100]}]")
    if given.get("downsampling"):
        raise illegal_argument("[downsampling] is not supported in the lifecycle of a data stream")
    enabled, retention = given.get("enabled", True), given.get("data_retention")
    if not isinstance(enabled, bool):
        raise SearchError("x_content_parse_exception", "[lifecycle] failed to parse field [enabled]")
    checked: dict[str, Any] = {"enabled": enabled}
    if retention is not None:
        if duration_ms(str(retention), "data_retention") <= 0:
            raise illegal_argument(f"[data_retention] must be positive, and is [{str(retention)[:100]}]")
        checked["data_retention"] = str(retention)
    return checked
