"""What a request under /holonic names: its tenant, a holon or portal in its path, the members of its body."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, PlainValidator
from pyoxigraph import NamedNode
from starlette.requests import Request

from graphdb.holonic.names import Tenant
from serve.json_bodies import JsonBody
from serve.parameters import Parameters, read_graph_iri, read_path_text

__all__ = ["HolonBody", "LayerBody", "PortalBody", "RunBody", "iri_of", "now", "tenant_of"]

_IRI_CHARACTERS_MAX = 4_096
_LABEL_CHARACTERS_MAX = 65_536


def _iri(value: object) -> NamedNode:
    if not isinstance(value, str):
        raise ValueError("has to be a string that is an absolute IRI")
    if len(value) > _IRI_CHARACTERS_MAX:
        raise ValueError(f"has {len(value)} characters, at most {_IRI_CHARACTERS_MAX} are allowed")
    try:
        return NamedNode(value)
    except ValueError as error:
        raise ValueError(f"{value!r} is not an absolute IRI: {error}") from None


_Iri = Annotated[NamedNode, PlainValidator(_iri, json_schema_input_type=str)]


class HolonBody(JsonBody):
    """A holon to declare."""

    iri: _Iri
    label: Annotated[str, Field(max_length=_LABEL_CHARACTERS_MAX)] | None = None
    member_of: _Iri | None = None


class LayerBody(JsonBody):
    """What to add to a layer."""

    turtle: str
    graph_slug: str | None = None


class PortalBody(JsonBody):
    """A portal to declare."""

    iri: _Iri
    source: _Iri
    target: _Iri
    construct_query: str


class RunBody(JsonBody):
    """What becomes of what comes through a portal."""

    store: bool | None = None


def tenant_of(parameters: Parameters, default: str) -> Tenant:
    """The tenant that the query string names. Raises InvalidParameter."""
    name = parameters.one("tenant")
    return Tenant(default if name is None else name)


def iri_of(request: Request) -> NamedNode:
    """The IRI that is one segment of the path, percent-encoded. Raises InvalidParameter."""
    return read_graph_iri("path", read_path_text(request.path_params["iri"]))


def now() -> str:
    """The time as xsd:dateTime, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
