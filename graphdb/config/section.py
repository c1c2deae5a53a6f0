"""What configuration sections are made of: frozen models without unknown keys, and checked kinds of text."""

from ipaddress import ip_network
from pathlib import Path
from re import fullmatch
from typing import Annotated, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FilePath,
    StringConstraints,
)

from graphdb.addresses import provider_url

__all__ = [
    "AbsoluteFile",
    "AbsolutePath",
    "AddressRange",
    "DataGraph",
    "GraphIri",
    "HostRule",
    "Keep",
    "Port",
    "ProviderUrl",
    "Section",
    "Sid",
    "TileAddress",
    "WebOrigin",
]


class Section(BaseModel):
    """One table of the configuration file; a key that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True)


def _address_range(text: str) -> str:
    ip_network(text, strict=False)
    return text


def _host_rule(text: str) -> str:
    try:
        return _address_range(text)
    except ValueError:
        label = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
        if fullmatch(rf"{label}(\.{label})*", text):
            return text
        raise ValueError(f"{text!r} is not a host name, an address or a CIDR range") from None


def _keep(text: str) -> str:
    if text in ("forever", "off") or fullmatch(r"[1-9]\d{0,4}d|[1-9]\d{0,17}", text):
        return text
    raise ValueError(f'{text!r} is neither "forever", days such as "90d", a number of entries, nor "off"')


def _number_as_text(value: object) -> object:
    return str(value) if type(value) is int else value


def _graph_iri(text: str) -> str:
    if fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*", text):
        return text
    raise ValueError(f"{text!r} is not an absolute IRI")


def _data_graph(name: str) -> str:
    return name if name in ("default", "union") else _graph_iri(name)


Port: TypeAlias = Annotated[int, Field(ge=1, le=65535)]
AddressRange: TypeAlias = Annotated[str, AfterValidator(_address_range)]
DataGraph: TypeAlias = Annotated[str, AfterValidator(_data_graph)]
GraphIri: TypeAlias = Annotated[str, AfterValidator(_graph_iri)]
Keep: TypeAlias = Annotated[str, BeforeValidator(_number_as_text), AfterValidator(_keep)]
HostRule: TypeAlias = Annotated[str, AfterValidator(_host_rule)]
ProviderUrl: TypeAlias = Annotated[str, AfterValidator(provider_url)]
# Both become part of a Content-Security-Policy.
WebOrigin: TypeAlias = Annotated[str, StringConstraints(pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$")]
TileAddress: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9./{}?=&%_@~-]*$")
]
Sid: TypeAlias = Annotated[str, StringConstraints(pattern=r"^S-\d+(-\d+){2,}$")]
# Made absolute when read: a worker process has another working directory than the command that started it.
AbsolutePath: TypeAlias = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]
AbsoluteFile: TypeAlias = Annotated[FilePath, AfterValidator(Path.absolute)]
