"""The RDF syntaxes: media types, file names, whether they carry graph names. Nothing here reads or writes."""

from enum import Enum
from pathlib import Path
from typing import Self

from pyoxigraph import RdfFormat

from graphdb.errors import InvalidParameter, UnsupportedMediaType

__all__ = ["COMPRESSED_ENDINGS", "RdfSyntax"]

COMPRESSED_ENDINGS = (".gz", ".zst")


class RdfSyntax(Enum):
    """One RDF syntax. The value is its media type, so that a member stays small when pickled.

    N_TRIPLES_STAR is N-Triples under the name that RDF-star gave it: a media type of its own, the same bytes.
    """

    file_extensions: tuple[str, ...]  # without dots, the usual one first
    rdf_format: RdfFormat  # what pyoxigraph calls it
    aliases: tuple[str, ...]  # older media types that bodies are sent under; we never answer with one

    def __new__(
        cls,
        media_type: str,
        file_extensions: tuple[str, ...],
        rdf_format: RdfFormat,
        aliases: tuple[str, ...] = (),
    ) -> Self:
        member = object.__new__(cls)
        member._value_ = media_type
        member.file_extensions, member.rdf_format, member.aliases = file_extensions, rdf_format, aliases
        return member

    N_TRIPLES = "application/n-triples", ("nt", "ntriples"), RdfFormat.N_TRIPLES
    N_TRIPLES_STAR = "application/n-triples-star", (), RdfFormat.N_TRIPLES
    TURTLE = "text/turtle", ("ttl", "turtle"), RdfFormat.TURTLE, ("application/x-turtle",)
    N_QUADS = "application/n-quads", ("nq", "nquads"), RdfFormat.N_QUADS, ("text/x-nquads", "text/nquads")
    TRIG = "application/trig", ("trig",), RdfFormat.TRIG, ("application/x-trig",)
    RDF_XML = (
        "application/rdf+xml",
        ("rdf", "xml", "owl", "rdfs"),
        RdfFormat.RDF_XML,
        ("application/xml", "text/xml"),
    )
    JSON_LD = "application/ld+json", ("jsonld",), RdfFormat.JSON_LD

    @property
    def media_type(self) -> str:
        """The media type, as a Content-Type has it without parameters."""
        return str(self.value)

    @property
    def file_extension(self) -> str:
        """The ending of a file in this syntax, without the dot."""
        return self.file_extensions[0] if self.file_extensions else self.rdf_format.file_extension

    @property
    def carries_graphs(self) -> bool:
        """True where a document can say which graph a triple is in."""
        return self.rdf_format.supports_datasets

    @property
    def takes_base(self) -> bool:
        """True where a document may have relative IRIs, which a base IRI completes."""
        return self.rdf_format not in (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)

    @classmethod
    def from_media_type(cls, content_type: str) -> "RdfSyntax":
        """The syntax of a Content-Type; its parameters do not matter, but for a charset other than UTF-8.

        Raises UnsupportedMediaType.
        """
        media_type, *parameters = (part.strip().lower() for part in content_type.split(";"))
        syntax = _BY_MEDIA_TYPE.get(media_type)
        if syntax is None or any(_is_foreign_charset(parameter) for parameter in parameters):
            raise UnsupportedMediaType(content_type, tuple(member.media_type for member in cls))
        return syntax

    @classmethod
    def from_path(cls, path: Path) -> "RdfSyntax":
        """The syntax that a file's name tells; data.ttl.gz is Turtle.

        Raises InvalidParameter.
        """
        name = path.with_suffix("") if path.suffix.lower() in COMPRESSED_ENDINGS else path
        syntax = _BY_EXTENSION.get(name.suffix.lower().removeprefix("."))
        if syntax is None:
            known = ", ".join(sorted(_BY_EXTENSION))
            raise InvalidParameter(path.name, f"no RDF syntax has this ending; known endings: {known}")
        return syntax


def _is_foreign_charset(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "charset" and value.strip().strip('"') not in {"utf-8", "utf8", "us-ascii"}


_BY_MEDIA_TYPE = {name: syntax for syntax in RdfSyntax for name in (syntax.media_type, *syntax.aliases)}
_BY_EXTENSION = {ending: syntax for syntax in RdfSyntax for ending in syntax.file_extensions}
