"""The service as the commands see it: HTTP calls whose failures are one line for a person."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from graphdb.addresses import is_loopback
from graphdb.rdf.formats import RdfSyntax
from serve.cli.console import CommandError, UsageError
from serve.cli.credentials import find_target

__all__ = ["BodyRefused", "Client", "Refused", "past_params"]


def past_params(as_of: str | None) -> dict[str, str]:
    """The parameters of a request about a state of the past; None: the present."""
    return {} if as_of is None else {"as_of": as_of}


class Refused(CommandError):
    """The service answered with an error."""


class BodyRefused(Refused):
    """The service said that the body is too large (413)."""


class Client:
    """A connection to one service. Use it in a `with` block."""

    def __init__(self, endpoint: str | None = None, profile: str | None = None) -> None:
        """See `find_target`."""
        target = find_target(endpoint, profile)
        endpoint = target.endpoint
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"--endpoint {endpoint}: not an http or https address")
        self._endpoint = endpoint.rstrip("/")
        # The server limits the time of a query, and a large write may take long: only connecting is limited.
        self._http = httpx.Client(
            base_url=self._endpoint,
            headers=target.headers,
            auth=target.auth,
            timeout=httpx.Timeout(None, connect=5),
            # A proxy from the environment is for hosts elsewhere.
            trust_env=not is_loopback(parts.hostname),
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        accept: str = "application/json",
        content_type: str | None = None,
        content: bytes | str | Iterable[bytes] | None = None,
        params: dict[str, str] | None = None,
    ) -> Iterator[httpx.Response]:
        """Send one request and hand out its answer, the body not read yet. Raises CommandError unless 2xx."""
        headers = {"Accept": accept} | ({"Content-Type": content_type} if content_type else {})
        try:
            with self._http.stream(method, path, headers=headers, content=content, params=params) as response:
                if not response.is_success:
                    raise _failure(response)
                yield response
        except httpx.ConnectError:
            raise CommandError(f"nothing answers at {self._endpoint}; is the service running?") from None
        except httpx.TimeoutException:
            raise CommandError(f"{self._endpoint} does not answer in time") from None
        except httpx.RemoteProtocolError:
            raise CommandError(f"{self._endpoint} ended the connection before the answer was whole") from None
        except httpx.HTTPError as error:
            raise CommandError(f"{self._endpoint}: {error}") from None

    def update(self, text: str) -> dict[str, Any]:
        """Perform a SPARQL update; the answer is the update confirmation."""
        return self._record("POST", "/update", text.encode(), "application/sparql-update")

    @property
    def data_iri(self) -> str:
        """Where `merge` sends documents: the base of relative IRIs in those that go to no named graph."""
        return str(self._http.base_url.join("data").copy_with(userinfo=b""))

    def merge(self, body: bytes, media_type: str, graph: str | None) -> dict[str, Any]:
        """Add an RDF document to a graph; None: the default graph, and the graphs that the body names."""
        return self._record("POST", "/data", body, media_type, {"graph": graph} if graph else None)

    def load(self, lines: Iterable[bytes]) -> dict[str, Any]:
        """Add N-Quads as one change, while they are made; blank nodes keep their labels."""
        return self._record("POST", "/data", lines, RdfSyntax.N_QUADS.media_type, {"bulk": "true"})

    def cluster(self, method: str, below: str = "", fields: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask for the cluster's report, or for a change with these fields below it, which answers with it."""
        if fields is None:
            return self._record(method, f"/cluster{below}")
        return self._record(method, f"/cluster{below}", json.dumps(fields).encode(), "application/json")

    def named_states(
        self, method: str, name: str = "", params: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Ask for the named states, or about one."""
        return self._record(
            method, f"/snapshots/{quote(name, safe='')}" if name else "/snapshots", params=params
        )

    def purge(self, kind: str, iri: str) -> dict[str, Any]:
        """Purge a resource or a graph; the answer is the record of it."""
        return self._record("POST", "/history/purge", params={kind: iri})

    def purges(self) -> dict[str, Any]:
        """The purges there were."""
        return self._record("GET", "/history/purge")

    def _record(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None = None,
        content_type: str | None = None,
        params: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        with self.stream(method, path, content=body, content_type=content_type, params=params) as response:
            response.read()
            record: dict[str, Any] = response.json()
            return record

    def health(self) -> dict[str, Any]:
        """The health record, also if the HTTP status is 503."""
        try:
            response = self._http.get("/health")
        except httpx.HTTPError:
            raise CommandError(f"nothing answers at {self._endpoint}; is the service running?") from None
        if response.status_code in (401, 403, 429):
            raise _failure(response)
        try:
            record = response.json()
        except ValueError:
            record = None
        if not isinstance(record, dict) or not ("status" in record and "role" in record):
            raise CommandError(f"{self._endpoint} does not answer with a health record")
        return record


def _failure(response: httpx.Response) -> Refused:
    response.read()
    try:
        reason = str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        reason = response.reason_phrase
    kind = BodyRefused if response.status_code == 413 else Refused
    return kind(f"the service answered {response.status_code}: {' '.join(reason.split())}")
