"""Mappings and documents against naive twins."""

import ipaddress
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.mapping import Mapping
from graphdb.search.mapping.date_patterns import DatePattern
from graphdb.search.mapping.dates import DEFAULT_FORMAT, date_format, date_math
from graphdb.search.mapping.instants import zone_of
from graphdb.search.mapping.readers import address_of, address_term
from graphdb.search.mapping.wildcards import wildcard_match
from tests.unit.search.mapping.support import SPACES

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-(2**63), 2**63 - 1),
    "f": st.floats(-(2.0**90), 2.0**90, width=32),
    "b": st.booleans(),
    "s": st.text("xyz ", max_size=8),
}
NAMES = st.sampled_from(["a", "b.c", "d"])


def members(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The first letter of a name says what its values are, so that no two documents contradict."""
    leaf = st.one_of(
        [
            st.tuples(
                st.just(letter),
                st.one_of(st.none(), values, st.lists(st.one_of(st.none(), values), max_size=3)),
            )
            for letter, values in LEAVES.items()
        ]
    )
    below = st.tuples(st.just("o"), st.one_of(inside, st.lists(inside, max_size=2)))
    pairs = st.tuples(NAMES, st.one_of(leaf, below))
    return st.lists(pairs, max_size=4).map(
        lambda given: {f"{kind}_{name}": value for name, (kind, value) in given}
    )


EMPTY: st.SearchStrategy[dict[str, Any]] = st.just({})
DOCUMENTS = st.recursive(EMPTY, members, max_leaves=6)
INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(
    lambda moment: (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
)


def naive(source: Any, path: str, found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """All leaves by path, in order."""
    if isinstance(source, list):
        for item in source:
            naive(item, path, found)
    elif isinstance(source, dict):
        for name, value in source.items():
            naive(value, f"{path}.{name}" if path else name, found)
    elif source is not None:
        found.setdefault(path, []).append(source)
    return found


@given(DOCUMENTS)
def test_a_document_gives_all_its_leaves(source: dict[str, Any]) -> None:
    document, mapping = Mapping.of({"date_detection": False}, SPACES).parse(source)
    leaves = naive(source, "", {})
    whole = {
        path: [int(value) for value in values]
        for path, values in leaves.items()
        if isinstance(values[0], int)
    }
    texts = {path: values for path, values in leaves.items() if isinstance(values[0], str)}
    assert document.ints == whole
    assert document.floats == {
        path: values for path, values in leaves.items() if isinstance(values[0], float)
    }
    assert document.terms == {f"{path}.keyword": values for path, values in texts.items()}
    for path, values in texts.items():
        assert document.texts[path].terms == [word for value in values for word in value.split()]
        assert document.texts[path].positions == sorted(set(document.texts[path].positions))
    assert mapping.parse(source)[1] is mapping


@given(DOCUMENTS, DOCUMENTS)
def test_merging_is_idempotent_and_knows_both(first: dict[str, Any], second: dict[str, Any]) -> None:
    empty = Mapping.of({}, SPACES)
    one, both = empty.parse(first)[1], empty.parse(first)[1].parse(second)[1]
    assert both.merged(both.as_json()).as_json() == both.as_json()
    assert one.merged(both.as_json()).as_json() == both.as_json()
    assert Mapping.of(both.as_json(), SPACES).as_json() == both.as_json()


@given(INSTANTS)
def test_the_default_format_writes_what_datetime_writes(ms: int) -> None:
    there = date_format(DEFAULT_FORMAT)
    written = there.write(ms)
    assert written == (EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace(
        "+00:00", "Z"
    )
    assert there.parse(written) == ms


@given(
    INSTANTS,
    st.sampled_from(
        [
            "date_time", "basic_date_time", "week_date_time", "basic_week_date_time", "ordinal_date_time",
            "basic_ordinal_date_time", "epoch_second", "strict_date_optional_time_nanos", "yyyyMMddHHmmssSSS",
            "EEE d MMMM yyyy h:mm:ss.SSS a", "yyyy DDD A", "K:m:s.SSSSSS a dd/MM/uuuu Z",
        ]
    ),
)  # fmt: skip
def test_formats_read_what_they_write(ms: int, format: str) -> None:
    there = date_format(format)
    assert there.parse(there.write(ms)) == ms


@given(
    INSTANTS, st.sampled_from("yMwdhms"), st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "-03:30"])
)
def test_rounding_down_and_up_hold_the_instant_between_them(ms: int, unit: str, zone: str) -> None:
    where, there = zone_of(zone), date_format("epoch_millis")
    low, high = (date_math(f"now/{unit}", there, ms, up, where) for up in (False, True))
    assert low <= ms <= high
    assert date_math(f"now/{unit}", there, low, False, where) == low
    assert date_math(f"now/{unit}", there, high, True, where) == high


@given(st.text("abc'[]yMdHms-: ", max_size=12), st.text("0123456789-: abc", max_size=20))
def test_any_pattern_and_text_end_in_a_date_or_an_error(pattern: str, text: str) -> None:
    try:
        date_format(pattern).parse(text)
    except SearchError:
        return


@given(st.lists(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)), max_size=5))
def test_address_terms_sort_as_addresses(
    addresses: list[ipaddress.IPv4Address | ipaddress.IPv6Address],
) -> None:
    def number(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> int:
        return int(address) + (0xFFFF << 32 if address.version == 4 else 0)

    terms = sorted(address_term(str(address)) for address in addresses)
    shown = [number(ipaddress.ip_address(address_of(term))) for term in terms]
    assert shown == sorted(number(address) for address in addresses)


@given(st.text("ab*", max_size=6), st.text("ab", max_size=8))
def test_wildcards(pattern: str, text: str) -> None:
    assert wildcard_match(pattern, text) == fnmatchcase(text, pattern)


@given(
    st.integers(-(2**63), 2**63 - 1) | st.integers(-70_000 * 10**15, 260_000 * 10**15),
    st.sampled_from(["strict_date_optional_time", "date_optional_time"]),
)
def test_instants_are_written_as_the_pattern_of_the_format_does(nanos: int, name: str) -> None:
    written = date_format(name).write_nanos(nanos)
    assert written == DatePattern("uuuu-MM-dd'T'HH:mm:ss.SSSXXX").write(nanos)
    with_nanos = date_format("strict_date_optional_time_nanos").write_nanos(nanos)
    digits = 3 + len(f"{nanos % 1_000_000:06}".rstrip("0"))
    assert with_nanos == DatePattern(f"uuuu-MM-dd'T'HH:mm:ss.{'S' * digits}XXX").write(nanos)
