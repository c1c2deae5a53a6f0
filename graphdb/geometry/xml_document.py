"""Safe reading of XML as a tree: no DOCTYPE, so no entities, and no deep nesting. Numbers as text."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from graphdb.errors import BadGeometry

__all__ = ["Element", "numbers_text", "read_xml"]

DEPTH_MAX: Final = 100
_BETWEEN = " "  # a namespace and a name; it can be in neither


@dataclass(slots=True)
class Element:
    """One element; text is its own, without that of its children."""

    namespace: str
    name: str
    attributes: Mapping[str, str]
    children: list["Element"] = field(default_factory=list)
    text: str = ""

    def named(self, *names: str) -> Iterator["Element"]:
        """Its children with one of these names."""
        return (child for child in self.children if child.name in names)

    def first(self, *names: str) -> "Element | None":
        """Its first child with one of these names."""
        return next(self.named(*names), None)


def read_xml(text: str) -> Element:
    """The root of a document. Raises BadGeometry: malformed, nested too deeply, or with a DOCTYPE."""
    reader = _Reader()
    try:
        reader.parser.Parse(text, True)
    except expat.ExpatError as error:
        where = f"line {error.lineno}, column {error.offset + 1}"
        raise BadGeometry(f"malformed XML at {where}: {expat.ErrorString(error.code)}") from None
    assert reader.root is not None, "a document without a root is malformed"
    return reader.root


def numbers_text(numbers: Iterable[float]) -> list[str]:
    """Each with as many digits as necessary to read it back."""
    return [repr(number).removesuffix(".0") for number in numbers]


class _Reader:
    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._texts: list[list[str]] = []
        self.parser = expat.ParserCreate(namespace_separator=_BETWEEN)
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._read_text

    def _refuse(self, *_: object) -> None:
        raise BadGeometry("XML with a DOCTYPE is refused")

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= DEPTH_MAX:
            raise BadGeometry(f"the XML is nested more than {DEPTH_MAX} deep")
        namespace, _, local = name.rpartition(_BETWEEN)
        element = Element(namespace, local, attributes)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)
        self._texts.append([])

    def _end(self, _name: str) -> None:
        self._open.pop().text = "".join(self._texts.pop())

    def _read_text(self, text: str) -> None:
        self._texts[-1].append(text)
