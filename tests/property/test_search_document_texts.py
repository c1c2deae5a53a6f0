"""Documents whose texts are looked through together, against the reader of one document."""

import struct

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphdb.search.document_texts import NUMBERS_MIN, LongNumbers, PlainDocuments
from graphdb.search.errors import SearchError
from serve.search.documents.write_options import read_document

WHOLE = st.one_of(st.integers(-(10**20), 10**20), st.integers(-300, 300), st.just(2**53 + 1))
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-2, 2).map(repr),
    st.floats(-2, 2, width=32).map(repr),
    st.floats(-2, 2).map("{:.4f}".format),
    st.floats(-2, 2).map("{:.19f}".format),
    WHOLE.map(str),
    st.builds("{}.{}e{}".format, WHOLE, st.integers(0, 10**19), st.integers(-30, 30)),
    # halfway between two doubles, and hardly beside
    st.builds("{}{}".format, st.integers(2**52, 2**53 - 1), st.sampled_from([".5", ".50", ".49", ".500001"])),
    st.sampled_from(["0", "-0", "-0.0", "0e0", "1E+2", "1e-7", "9007199254740993"]),
)
ODD = st.sampled_from(
    ["01", "1.", ".5", "-", "+1", "1e", "1e+", "0x1", "NaN", "true", '"1"', "[1]", "{}", "1 2", "", "1e999"]
)
SPACES = st.sampled_from(["", "", "", " ", "\n ", "\t"])
ARRAYS = st.builds(
    lambda numbers, odd, at, space: (
        f"[{space}" + f"{space},{space}".join([*numbers[:at], *odd, *numbers[at:]]) + f"{space}]"
    ),
    st.lists(NUMBERS, min_size=NUMBERS_MIN, max_size=NUMBERS_MIN + 2),
    st.one_of(st.just([]), st.just([]), st.just([]), st.lists(ODD, min_size=1, max_size=1)),
    st.integers(0, NUMBERS_MIN),
    SPACES,
)
VALUES = st.one_of(
    ARRAYS,
    ARRAYS,
    NUMBERS,
    ODD,
    st.sampled_from(
        ['"a: [1,2]"', '"{"', '"é"', r'"\""', r'"\u003a"', "null", "[]", "[[1]]", '{"a":1}', '"a', '"\n"']
    ),
    ARRAYS.map(lambda array: f"[{array}]"),
    ARRAYS.map(lambda array: f'{{"v":{array}}}'),
    ARRAYS.map(lambda array: f'"{array}"'),
)
NAMES = st.sampled_from(['"a"', '"b"', '"v"', '"v"', '"é"', '"a:b"', r'"\u0061"', '""', "a"])
TEXTS = st.one_of(
    st.builds(
        lambda members, space: (
            f"{space}{{" + ",".join(f"{name}{space}:{space}{value}" for name, value in members) + f"}}{space}"
        ).encode(),
        st.lists(st.tuples(NAMES, VALUES), max_size=4),
        SPACES,
    ),
    st.builds(lambda text, cut: text.encode()[:cut], ARRAYS.map('{{"v":{}}}'.format), st.integers(0, 40)),
    ARRAYS.map(str.encode),
    st.sampled_from([b"", b"1", b"[]", b"{} {}", b'{"a":"\xff"}', b"\xef\xbb\xbf{}"]),
)


@settings(deadline=None, max_examples=500)
@given(st.lists(TEXTS, max_size=4))
@example([b'{"v":[' + b"0.5," * 15 + b'0.5],"v":1}'])
@example([b'{"v":[' + b"0.5," * 15 + b'0.5],"b":[' + b"1.5," * 16 + b"1.5]}"])
@example([b'{"v":null,"b":[' + b"0.5," * 15 + b"-0.0]}"])
def test_what_is_plain_is_what_the_reader_reads(texts: list[bytes]) -> None:
    plain = PlainDocuments(texts)
    for place, text in enumerate(texts):
        found = plain.read(place)
        if found is None:
            continue
        value, numbers = found
        assert numbers is None or numbers.name not in value
        expected = dict(read_document(text))
        if numbers is not None:
            array = expected.pop(numbers.name)
            assert struct.pack(f"{len(array)}d", *array) == numbers.raw
        assert orjson.dumps(value) == orjson.dumps(expected)


def test_vectors_are_apart() -> None:
    """Else the test above compares nothing: short decimals, and doubles of four bytes as they are written."""
    short = [round(number / 7, 4) for number in range(-20, 20)]
    long = [float(struct.unpack("f", struct.pack("f", number / 7))[0]) for number in range(-20, 20)]
    texts = [orjson.dumps({"a": "x: [1]", "v": vector, "b": [1, 2]}) for vector in (short, long)]
    plain = PlainDocuments([b"", *texts])
    assert plain.read(0) is None
    for place, vector in enumerate((short, long), 1):
        raw = struct.pack("40d", *vector)
        assert plain.read(place) == ({"a": "x: [1]", "b": [1, 2]}, LongNumbers("v", raw))


def test_a_name_that_comes_twice_is_not_passed_over() -> None:
    text = b'{"v":[' + b"0.5," * 15 + b'0.5],"v":1}'
    assert PlainDocuments([text]).read(0) is None
    with pytest.raises(SearchError, match="Duplicate field"):
        read_document(text)
