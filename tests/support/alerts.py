"""Alerts as tests make them."""

from typing import Any

from graphdb.alerts.definition import Alert, Definition

__all__ = ["NOON_MS", "an_alert", "definition"]

NOON_MS = 1_700_000_000_000


def definition(name: str = "many", **members: Any) -> Definition:
    """One that anybody could make, but for these members."""
    usual: dict[str, Any] = {
        "query": "SELECT * { ?s ?p ?o }",
        "condition": "result > 0",
        "interval_seconds": 60,
        "webhook": "http://127.0.0.1:9/",
    }
    return Definition(name, **usual | members)


def an_alert(id_: str = "a", created_at_ms: int = NOON_MS, **members: Any) -> Alert:
    """One that was just made."""
    return Alert(id_, definition(id_, **members), created_at_ms)
