"""IRIs of a text: valid (RFC 3987), and relative references made absolute (RFC 3986, section 5.2)."""

import re
from functools import lru_cache

from pyoxigraph import NamedNode

__all__ = ["resolve_iri", "why_invalid"]

# RFC 3986, appendix B: scheme, authority, path, query, fragment. It matches every string.
_PARTS = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)


@lru_cache(maxsize=4096)
def why_invalid(iri: str) -> str | None:
    """None for a valid absolute IRI, else what is wrong with it."""
    try:
        NamedNode(iri)
    except ValueError as error:
        return str(error)
    return None


def resolve_iri(reference: str, base: str | None) -> str:
    """The absolute IRI that a reference means; itself where it is absolute already, dots and all.

    Raises ValueError, saying why, for a relative reference without base and for what is no IRI.
    """
    if not _has_scheme(reference):
        if base is None:
            raise ValueError(f"the relative IRI <{reference}> needs a BASE")
        if ":" in re.split("[/?#]", reference, maxsplit=1)[0]:
            raise ValueError(f"<{reference}> is not a valid IRI: what is before ':' is no scheme")
        reference = _joined(base, reference)
    reason = why_invalid(reference)
    if reason is not None:
        raise ValueError(f"<{reference}> is not a valid IRI: {reason}")
    return reference


def _has_scheme(reference: str) -> bool:
    return _split(reference)[0] is not None


def _split(reference: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    found = _PARTS.fullmatch(reference)
    assert found is not None
    scheme, authority, path, query, fragment = found.groups()
    return scheme, authority, path, query, fragment


def _joined(base: str, reference: str) -> str:
    """Section 5.2.2 for a reference without scheme."""
    scheme, authority, path, query, _ = _split(base)
    _, own_authority, own_path, own_query, fragment = _split(reference)
    if own_authority is not None:
        authority, path, query = own_authority, _without_dots(own_path), own_query
    elif own_path:
        path, query = _without_dots(_merged(authority, path, own_path)), own_query
    elif own_query is not None:
        query = own_query
    return "".join(
        (
            f"{scheme}:",
            "" if authority is None else f"//{authority}",
            path,
            "" if query is None else f"?{query}",
            "" if fragment is None else f"#{fragment}",
        )
    )


def _merged(authority: str | None, base_path: str, path: str) -> str:
    """Section 5.2.3: the reference's path in place of what follows the base's last slash."""
    if path.startswith("/"):
        return path
    if authority is not None and not base_path:
        return "/" + path
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Section 5.2.4: the steps . and .. taken."""
    kept: list[str] = []
    segments = path.split("/")
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment == "..":
            if len(kept) > 1 or (kept and kept[0]):
                kept.pop()
            if last:
                kept.append("")
        elif segment == ".":
            if last:
                kept.append("")
        else:
            kept.append(segment)
    return "/".join(kept)
