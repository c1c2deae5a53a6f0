import math
from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.fields import FieldSpec
from graphdb.search.mapping import Mapping
from graphdb.search.mapping.value_formats import interval_of, range_of, shown, term_of
from tests.unit.search.mapping.support import SPACES

DAY = 1_577_836_800_000  # 2020-01-01


def spec(type_name: str, **parameters: Any) -> FieldSpec:
    found = Mapping.of({"properties": {"f": {"type": type_name, **parameters}}}, SPACES).field("f")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (spec("keyword"), 5, "5"),
        (spec("keyword"), True, "true"),
        (spec("keyword", normalizer="lower"), "ABC", "abc"),
        (spec("long"), "7", 7),
        (spec("long"), 7.0, 7),
        (spec("long"), 7.5, 7.5),
        (spec("long"), 2**63, math.inf),
        (spec("float"), 0.1, 0.10000000149011612),
        (spec("scaled_float", scaling_factor=100), "1.239", 1.24),
        (spec("boolean"), "true", 1),
        (spec("date"), "2020-01-01", DAY),
        (spec("ip"), "1.2.3.4", "0000:0000:0000:0000:0000:ffff:0102:0304"),
        (spec("ip"), "::1", "0000:0000:0000:0000:0000:0000:0000:0001"),
    ],
)
def test_terms(field: FieldSpec, value: Any, expected: Any) -> None:
    assert term_of(field, value) == expected


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        (spec("long"), "x", "number_format_exception"),
        (spec("boolean"), "yes", "illegal_argument_exception"),
        (spec("date"), "x", "parse_exception"),
        (spec("ip"), "x", "illegal_argument_exception"),
        (spec("geo_point"), "0,0", "illegal_argument_exception"),
    ],
)
def test_terms_that_cannot_be(field: FieldSpec, value: Any, kind: str) -> None:
    with pytest.raises(SearchError) as caught:
        term_of(field, value)
    assert caught.value.kind == kind


def test_ranges() -> None:
    date = spec("date", format="dd/MM/yyyy")
    assert range_of(date, "01/01/2020", True) == DAY + 86_399_999
    assert range_of(date, "2020", False, "+01:00", "yyyy") == DAY - 3_600_000
    assert range_of(date, "now/d", now_ms=DAY + 5) == DAY
    assert (range_of(spec("byte"), 1.5, True), range_of(spec("byte"), 1.5, False)) == (1, 2)
    assert range_of(spec("long"), 1e300) == 2**63 - 1


def test_intervals() -> None:
    assert interval_of(spec("date"), "2020-01-01") == (DAY, DAY + 86_399_999)
    low, high = interval_of(spec("ip"), "10.1.0.0/16") or ("", "")
    assert (shown(spec("ip"), low), shown(spec("ip"), high)) == ("10.1.0.0", "10.1.255.255")
    assert interval_of(spec("ip"), "10.1.0.0") is None


@pytest.mark.parametrize(
    ("field", "stored", "format", "expected"),
    [
        (spec("date"), DAY, None, "2020-01-01T00:00:00.000Z"),
        (spec("date"), DAY, "epoch_millis", str(DAY)),
        (spec("date", format="yyyy"), DAY, None, "2020"),
        (spec("boolean"), 1, None, True),
        (spec("ip"), "0000:0000:0000:0000:0000:ffff:0102:0304", None, "1.2.3.4"),
        (spec("float"), 0.10000000149011612, None, 0.1),
        (spec("geo_point"), (1.0, 2.0), None, {"type": "Point", "coordinates": [2.0, 1.0]}),
        (spec("geo_point"), (1.0, 2.0), "wkt", "POINT (2.0 1.0)"),
        (spec("keyword"), "x", None, "x"),
    ],
)
def test_shown(field: FieldSpec, stored: Any, format: str | None, expected: Any) -> None:
    assert shown(field, stored, format) == expected
