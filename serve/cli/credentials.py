"""With which credentials commands come to the service: those that the environment holds."""

import getpass
import os
import sys
from base64 import b64encode
from collections.abc import Mapping

from serve.cli.console import UsageError

__all__ = ["credential_headers"]

_CHOICES = ("GRAPHDB_API_KEY", "GRAPHDB_TOKEN", "GRAPHDB_USER")


def credential_headers(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """By GRAPHDB_API_KEY, or GRAPHDB_TOKEN, or GRAPHDB_USER and GRAPHDB_PASSWORD, which is asked for where it
    is not set; empty without any. Raises UsageError.
    """
    environ = os.environ if environ is None else environ
    given = [name for name in _CHOICES if environ.get(name)]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} are both set; which one is meant?")
    if not given:
        return {}
    value = environ[given[0]]
    if not value.isprintable() or (given[0] != "GRAPHDB_USER" and not value.isascii()):
        raise UsageError(f"{given[0]} holds characters that it cannot have")
    match given[0]:
        case "GRAPHDB_API_KEY":
            return {"X-API-Key": value}
        case "GRAPHDB_TOKEN":
            return {"Authorization": f"Bearer {value}"}
    password = environ.get("GRAPHDB_PASSWORD")
    if password is None:
        if not sys.stdin.isatty():
            raise UsageError("GRAPHDB_USER is set, and GRAPHDB_PASSWORD is not")
        password = getpass.getpass(f"Password of {value}: ")
    return {"Authorization": "Basic " + b64encode(f"{value}:{password}".encode()).decode()}
