"""Processors that look something up: `registered_domain`, `user_agent`.

Sources: Elasticsearch's documentation of both processors; the Public Suffix List; the rules of ua-parser.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from graphdb.search.errors import illegal_argument
from graphdb.search.ingest.document import IngestDocument, cast_text
from graphdb.search.ingest.options import ProcessorOptions

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

__all__ = ["LOOKUP_PROCESSORS"]

_Step: TypeAlias = Callable[[IngestDocument], None]

_NAME_MAX = 253  # of a name in the DNS
_AGENT_MAX = 1_000  # characters that are looked at: rules take up to 90 ms for 2,000
_PROPERTIES = ("name", "os", "device", "original", "version")


@cache
def _suffixes() -> "PublicSuffixList":
    """Read when a pipeline first wants it: 30 ms, a few MB."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList(accept_unknown=False)


def _registered_domain(options: ProcessorOptions, reading: Any) -> _Step:
    field, target = options.text("field"), options.text("target_field", "")
    ignores = options.flag("ignore_missing", True)
    suffixes = _suffixes()

    def step(document: IngestDocument) -> None:
        value = document.find(field)
        if value is None:
            if ignores:
                return
            document.get(field)  # says what is missing
            raise illegal_argument(f"field [{field}] is null, cannot process it.")
        name = cast_text(value, field)
        suffix = suffixes.publicsuffix(name) if 0 < len(name) <= _NAME_MAX else None
        if suffix is None:
            if ignores:
                return
            raise illegal_argument("unable to set domain information for document")
        registered = suffixes.privatesuffix(name)
        found = {"domain": name, "registered_domain": registered, "top_level_domain": suffix}
        found["subdomain"] = _before(name, registered)
        for member, text in found.items():
            if text is not None:
                document.set(f"{target}.{member}" if target else member, text)

    return step


def _before(name: str, registered: str | None) -> str | None:
    """What a name has before the domain that is registered."""
    if registered is None or not name.lower().endswith(f".{registered}"):
        return None
    return name[: -len(registered) - 1]


def _user_agent(options: ProcessorOptions, reading: Any) -> _Step:
    from ua_parser import parse  # when a pipeline first wants it: 80 ms, 14 MB

    field, target = options.text("field"), options.text("target_field", "user_agent")
    ignores, properties = (
        options.flag("ignore_missing", False),
        options.texts("properties", list(_PROPERTIES)),
    )
    if options.text("regex_file", None) is not None:
        raise options.error("regex_file", "is not supported: the rules are those of ua-parser")
    if options.flag("extract_device_type", False):
        raise options.error("extract_device_type", "is not supported: leave it out")
    wanted = {one.lower() for one in properties}
    for one in sorted(wanted - {*_PROPERTIES}):
        known = ", ".join(_PROPERTIES).upper()
        raise options.error("properties", f"illegal property value [{one[:50]}]. valid values are [{known}]")

    def step(document: IngestDocument) -> None:
        value = document.wanted(field, ignores, "cannot parse user-agent.")
        if value is None:
            return
        agent = cast_text(value, field)
        found = parse(agent[:_AGENT_MAX])
        browser, system, device = found.user_agent, found.os, found.device
        made: dict[str, Any] = {
            "original": agent,
            "name": "Other" if browser is None else browser.family,
            "version": None if browser is None else _version(browser),
            "os": None if system is None else _system(system),
            "device": {"name": "Other" if device is None else device.family},
        }
        document.set(target, {name: one for name, one in made.items() if name in wanted and one is not None})

    return step


def _system(system: Any) -> dict[str, str]:
    version = _version(system)
    if version is None:
        return {"name": system.family}
    return {"name": system.family, "version": version, "full": f"{system.family} {version}"}


def _version(found: Any) -> str | None:
    """Its parts, up to the first that is not known."""
    parts = []
    for part in (found.major, found.minor, found.patch, found.patch_minor):
        if not part:
            break
        parts.append(part)
    return ".".join(parts) or None


LOOKUP_PROCESSORS: dict[str, Callable[[ProcessorOptions, Any], _Step]] = {
    "registered_domain": _registered_domain,
    "user_agent": _user_agent,
}
