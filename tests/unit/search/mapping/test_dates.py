import pytest

from graphdb.search.errors import SearchError
from graphdb.search.mapping.dates import DEFAULT_FORMAT, date_format, date_math
from graphdb.search.mapping.instants import zone_of

ISO = date_format(DEFAULT_FORMAT)
NOW = ISO.parse("2020-02-29T13:14:15.016Z")


@pytest.mark.parametrize(
    ("format", "text", "start", "end"),
    [
        (DEFAULT_FORMAT, "2015-01-01T12:10:30Z", "2015-01-01T12:10:30.000Z", "2015-01-01T12:10:30.999Z"),
        (DEFAULT_FORMAT, "2015-01", "2015-01-01T00:00:00.000Z", "2015-01-01T23:59:59.999Z"),
        (DEFAULT_FORMAT, "2015", "2015-01-01T00:00:00.000Z", "2015-01-01T23:59:59.999Z"),
        (DEFAULT_FORMAT, "2015-06-01T12+02:00", "2015-06-01T10:00:00.000Z", "2015-06-01T10:59:59.999Z"),
        (DEFAULT_FORMAT, "1420070400001", "2015-01-01T00:00:00.001Z", "2015-01-01T00:00:00.001Z"),
        (DEFAULT_FORMAT, "-63072000", "1969-12-31T06:28:48.000Z", "1969-12-31T06:28:48.000Z"),  # no year
        (DEFAULT_FORMAT, "-1", "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        (DEFAULT_FORMAT, "2015-01-01T00:00:00,123456789", "2015-01-01T00:00:00.123Z",
         "2015-01-01T00:00:00.123Z"),
        ("epoch_second", "12", "1970-01-01T00:00:12.000Z", "1970-01-01T00:00:12.999Z"),
        ("epoch_second", "12.5", "1970-01-01T00:00:12.500Z", "1970-01-01T00:00:12.500Z"),
        ("yyyy-MM-dd HH:mm:ss", "2020-02-29 01:02:03", "2020-02-29T01:02:03.000Z",
         "2020-02-29T01:02:03.999Z"),
        ("date_optional_time", "2020-2-9", "2020-02-09T00:00:00.000Z", "2020-02-09T23:59:59.999Z"),
        ("basic_date", "20150102", "2015-01-02T00:00:00.000Z", "2015-01-02T23:59:59.999Z"),
        ("week_date", "2015-W53-5", "2016-01-01T00:00:00.000Z", "2016-01-01T23:59:59.999Z"),
        ("strict_ordinal_date", "2020-366", "2020-12-31T00:00:00.000Z", "2020-12-31T23:59:59.999Z"),
        ("8uuuu-MM-dd hh:mm a", "2015-01-01 12:10 am", "2015-01-01T00:10:00.000Z",
         "2015-01-01T00:10:59.999Z"),
        ("EEE, dd MMM yyyy HH:mm:ss Z", "Fri, 02 Jan 2015 10:00:00 +0200", "2015-01-02T08:00:00.000Z",
         "2015-01-02T08:00:00.999Z"),
        ("dd.MM.yyyy[ HH:mm]", "01.02.2020", "2020-02-01T00:00:00.000Z", "2020-02-01T23:59:59.999Z"),
        ("yyyy-MM-dd'T'HH 'o''clock'", "2020-01-01T05 o'clock", "2020-01-01T05:00:00.000Z",
         "2020-01-01T05:59:59.999Z"),
    ],
)  # fmt: skip
def test_formats(format: str, text: str, start: str, end: str) -> None:
    there = date_format(format)
    assert (ISO.write(there.parse(text)), ISO.write(there.parse(text, round_up=True))) == (start, end)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (DEFAULT_FORMAT, "2015-02-29"),
        (DEFAULT_FORMAT, "2015-1-1"),
        (DEFAULT_FORMAT, "2015-01-01T24:00:00"),
        (DEFAULT_FORMAT, "9" * 19),
        ("yyyy-MM-dd", "2015-01-01 "),
        ("week_date", "2015-W54-1"),
        ("ordinal_date", "2019-366"),
        ("d" * 5 + "H" * 3, "1" * 150),
    ],
)
def test_text_that_is_no_date(format: str, text: str) -> None:
    with pytest.raises(SearchError) as caught:
        date_format(format).parse(text)
    assert caught.value.reason == f"failed to parse date field [{text}] with format [{format}]"
    assert caught.value.cause is not None
    assert caught.value.cause.kind == "date_time_parse_exception"


@pytest.mark.parametrize("format", ["", "yyyy||", "[yyyy", "yyyy]", "'open", "yyyy-jj", "y" * 300])
def test_formats_that_are_none(format: str) -> None:
    with pytest.raises(SearchError):
        date_format(format)


def test_writing() -> None:
    there = date_format("EEEE d MMMM yyyy, h:mm a XXX D w")
    assert there.write(NOW, zone_of("America/New_York")) == "Saturday 29 February 2020, 8:14 AM -05:00 60 9"
    assert date_format("epoch_second").write(1500) == "1.5"
    assert ISO.write(253_402_300_800_000) == "+10000-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("now", "2020-02-29T13:14:15.016Z", "2020-02-29T13:14:15.016Z"),
        ("now-1d/d", "2020-02-28T00:00:00.000Z", "2020-02-28T23:59:59.999Z"),
        ("now/M", "2020-02-01T00:00:00.000Z", "2020-02-29T23:59:59.999Z"),
        ("now+1y", "2021-02-28T13:14:15.016Z", "2021-02-28T13:14:15.016Z"),
        ("now-1M/w", "2020-01-27T00:00:00.000Z", "2020-02-02T23:59:59.999Z"),
        ("now/y-1s", "2019-12-31T23:59:59.000Z", "2020-12-31T23:59:58.999Z"),
        ("2020-01-01||+1M/M", "2020-02-01T00:00:00.000Z", "2020-02-29T23:59:59.999Z"),
        ("2020-01-31||+1M", "2020-02-29T00:00:00.000Z", "2020-02-29T00:00:00.000Z"),
        ("2020-01-31", "2020-01-31T00:00:00.000Z", "2020-01-31T23:59:59.999Z"),
    ],
)
def test_date_math(text: str, start: str, end: str) -> None:
    assert ISO.write(date_math(text, ISO, NOW)) == start
    assert ISO.write(date_math(text, ISO, NOW, round_up=True)) == end


def test_date_math_in_a_zone_that_changes_its_clocks() -> None:
    zone = zone_of("Europe/Berlin")
    assert ISO.write(date_math("2020-03-29||/d", ISO, 0, False, zone)) == "2020-03-28T23:00:00.000Z"
    assert ISO.write(date_math("2020-03-29||/d", ISO, 0, True, zone)) == "2020-03-29T21:59:59.999Z"
    assert ISO.write(date_math("2020-03-28T12:00:00||+1d", ISO, 0, False, zone)) == "2020-03-29T10:00:00.000Z"
    assert (
        ISO.write(date_math("2020-03-28T12:00:00||+24h", ISO, 0, False, zone)) == "2020-03-29T11:00:00.000Z"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("now+", "truncated date math [+]"),
        ("now*1", "operator not supported for date math [*1]"),
        ("now/1d", "rounding `/` can only be used on single unit types [/1d]"),
        ("now+1x", "unit [x] not supported for date math [+1x]"),
        ("now+" + "9" * 30 + "d", "unit or amount not supported for date math [+" + "9" * 30 + "d]"),
        ("now+999999999y", "date math [+999999999y] leaves the years that can be told"),
        ("zz", f"failed to parse date field [zz] with format [{DEFAULT_FORMAT}]: "
               f"[failed to parse date field [zz] with format [{DEFAULT_FORMAT}]]"),
    ],
)  # fmt: skip
def test_date_math_that_is_none(text: str, reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        date_math(text, ISO, NOW)
    assert (caught.value.kind, caught.value.reason) == ("parse_exception", reason)


@pytest.mark.parametrize("name", ["Nowhere/Town", "+25:00", "../../etc/passwd", "", "x" * 300])
def test_zones_that_are_none(name: str) -> None:
    with pytest.raises(SearchError):
        zone_of(name)


@pytest.mark.parametrize(
    "text",
    [
        "2015-03-31", "2016-02-29", "2015-02-29", "0000-01-01", "9999-12-31", "2015-W10-1", "2015-3-31",
        "2015-03-31T23:59:59Z", "2015-03-31T24:00:00Z", "2015-03-31T23:60:00Z", "2015-03-31T23:59:60Z",
        "2015-03-31T12:30:00.123Z", "2015-03-31T12:30:00,123Z", "2015-03-31T12:30:00.12Z",
        "2015-03-31T12:30:00.1234Z", "2015-03-31t12:30:00Z", "2015-03-31 12:30:00Z", "2015-03-31T1 :30:00Z",
        "2015-03-31T12:30:00z", "2015-03-31Z", "2015-03-31T-1:30:00Z", "2015-03-31T12:30:00.+12Z",
        "2015-03-3\N{ARABIC-INDIC DIGIT ONE}", "2015-03-31T1\N{ARABIC-INDIC DIGIT ONE}:30:00Z", "", "Z",
    ],
)  # fmt: skip
def test_plain_dates_are_what_the_slower_way_makes_of_them(text: str) -> None:
    try:
        wanted = ISO.parse(text, zone=zone_of("Etc/UTC"))
    except SearchError:
        with pytest.raises(SearchError):
            ISO.parse(text)
    else:
        assert ISO.parse(text) == wanted
