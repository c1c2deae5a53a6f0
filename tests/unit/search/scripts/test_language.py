"""The language of scripts: what they compute, and what they may not do."""

import math
from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.scripts.script import UPDATE, VALUES, Script, parse_script

PARAMS = {"a": None, "n": 5, "list": ["a", "b", "a"], "map": {"x": 1, "y": 2}}


def run(source: str, lang: str = "painless") -> Any:
    return Script(source, lang, PARAMS, VALUES).run({})


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("(" * 5_000 + "1" + ")" * 5_000, 1),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7 / 2.0", 3.5),
        ("1.0 / 0", math.inf),
        ("9223372036854775807L + 1", -(2**63)),
        ("1 << 3 | 1", 9),
        ("-1 >>> 60", 15),
        ("0x10", 16),
        ("1e3", 1000.0),
        ("'a' + 1 + 2.5 + null + true", "a12.5nulltrue"),
        ("1.0E10 + ''", "1.0E10"),
        ("1 == 1.0", True),
        ("true == 1", False),
        ("'a' == 'a' && !(1 > 2) || 1 / 0 == 1", True),
        ("params.n > 3 ? 'more' : 'less'", "more"),
        ("params.a ?: 3", 3),
        ("Processors.bytes('1.5kb')", 1536),
        ("Processors.lowercase('FooBar') + Processors.uppercase('x')", "foobarX"),
        ("Processors.urlDecode('a%20b+c')", "a b c"),
        ("Processors.json('{\"x\": [1, null]}').x[0]", 1),
        ("Map m = ['t': '{\"x\": 2}']; Processors.json(m, 't'); m.x", 2),
        ("params.a?.b?.c", None),
        ("params['map']['x'] + params.map.y", 3),
        ("params.missing == null", True),
        ("def x = 0; for (int i = 0; i < 10; i++) x += i; return x", 45),
        ("def x = 0; for (def i : [1, 2, 3, 4]) { if (i == 2) continue; if (i == 4) break; x += i } x", 4),
        ("int x = 3; while (x > 0) { x-- } x", 0),
        ("int x = 0; do { ++x } while (x < 3); x", 3),
        ("def x = 1; x++ + ++x", 4),
        ("if (params.n == 5) { return 'five' } else { return 'other' }", "five"),
        ("if (params.n == 4) return 1; else if (params.n == 5) return 2; return 3", 2),
        ("def l = [3, 1, 2]; l.sort((a, b) -> b - a); l", [3, 2, 1]),
        ("params.list.removeIf(t -> t == 'a'); params.list", ["b"]),
        ("def l = new ArrayList(); l.add(1); l.add(0, 2); l.remove(1); l", [2]),
        ("def t = 0; params.map.forEach((k, v) -> { t += v }); t", 3),
        ("def m = ['a': 1]; m.b = 2; m['c'] = m.a + m.b; m.remove('a'); m", {"b": 2, "c": 3}),
        ("def m = [:]; m.computeIfAbsent('x', k -> []).add(1); m", {"x": [1]}),
        ("def n = 0; for (def e : params.map.entrySet()) { n += e.getValue() + e.key.length() } n", 5),
        ("params.list.contains('b') && params.list.indexOf('c') == -1", True),
        ("[1, 2, 3].sum() + [1, 2].collect(x -> x * 2).sum()", 12.0),
        ("'abc'.substring(1).toUpperCase() + 'x'.length()", "BC1"),
        ("'a,b'.splitOnToken(',')", ["a", "b"]),
        ("'abc'.hashCode()", 96354),
        ("Math.max(1, 2) + Math.round(2.5) + Math.abs(-3)", 8),
        ("Math.log10(100) + Math.pow(2, 3) + Math.PI - Math.PI", 10.0),
        ("Integer.parseInt('12') + Long.parseLong('3')", 15),
        ("(int) 3.9 + (int) -3.9", 0),
        ("(int) 4294967297L", 1),
        ("int x = 3; double y = x; y / 2", 1.5),
        ("[1] instanceof List && !('a' instanceof Map) && 1 instanceof Number", True),
        ("// a comment\n1 /* another */ + 1", 2),
        ("ZonedDateTime.parse('2020-01-31T10:00:00Z').plusMonths(1).getDayOfMonth()", 29),
        ("ZonedDateTime.parse('2020-03-01T00:00:00Z').dayOfWeekEnum.name", "SUNDAY"),
        (
            "def day = ZonedDateTime.parse('2020-03-01T00:00:00Z'); "
            "day.dayOfWeekEnum.getDisplayName(TextStyle.FULL, Locale.ENGLISH) + ' '"
            " + day.getMonth().getDisplayName(TextStyle.SHORT, Locale.US)"
            " + day.dayOfWeekEnum.getDisplayName(TextStyle.NARROW_STANDALONE, Locale.ENGLISH)",
            "Sunday MarS",
        ),
        ("Instant.ofEpochMilli(86400000L).toString()", "1970-01-02T00:00:00.000Z"),
        (
            "ChronoUnit.MONTHS.between(ZonedDateTime.parse('2020-01-31T00:00:00Z'), "
            "ZonedDateTime.parse('2020-03-30T00:00:00Z'))",
            1,
        ),
        ("'2020'.compareTo('2021') < 0", True),
        ("def s = ''; for (c in ['a', 'b']) s += c; s", "ab"),
    ],
)
def test_values(source: str, value: Any) -> None:
    found = run(source)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("n * 2", 10.0),
        ("7 / 2", 3.5),
        ("n > 3 ? 1 : 0", 1.0),
        ("n > 3", 1.0),
        ("max(n, 7, 3) + sqrt(9) + ln(1)", 10.0),
        ("!(n == 5)", 0.0),
    ],
)
def test_expressions(source: str, value: float) -> None:
    assert run(source, "expression") == value


def failed(source: str, lang: str = "painless") -> tuple[str, str, str, int]:
    """What it was, the type and reason of its cause, and the place."""
    with pytest.raises(SearchError) as caught:
        Script(source, lang, PARAMS, VALUES).run({})
    error = caught.value
    assert error.kind == "script_exception"
    assert error.metadata["lang"] == lang
    assert error.metadata["script"] == source
    text, mark = error.metadata["script_stack"]
    assert mark.endswith("^---- HERE")
    assert len(mark) - len("^---- HERE") <= len(text)
    assert error.cause is not None
    return error.reason, error.cause.kind, error.cause.reason, error.metadata["position"]["offset"]


@pytest.mark.parametrize(
    ("source", "kind", "reason", "at"),
    [
        ("1 +", "illegal_argument_exception", "unexpected end of script.", 3),
        ("a b", "illegal_argument_exception", "unexpected token ['b'].", 2),
        ("x + 1", "illegal_argument_exception", "cannot resolve symbol [x]", 0),
        ("def a = 1; def a = 2", "illegal_argument_exception", "variable [a] is already defined.", 15),
        ("params = 1", "illegal_argument_exception", "variable [params] is read-only", 0),
        ("Math.foo(1)", "illegal_argument_exception", "static method [Math, foo/1] not found", 5),
        ("foo(1)", "illegal_argument_exception", "Unknown call [foo] with [1] arguments.", 0),
        ("break", "illegal_argument_exception", "Break statement outside of a loop.", 0),
        ("'a' =~ /b/", "illegal_argument_exception", "regular expressions are not supported in scripts", 7),
        ("'a\\q'", "illegal_argument_exception", "unknown escape [\\q] in a string", 2),
        ("new Thread()", "illegal_argument_exception", "unexpected token ['Thread'].", 4),
        ("int[] a = new int[3]", "illegal_argument_exception", "unexpected token ['['].", 3),
        ("1 = 2", "illegal_argument_exception", "the left-hand side cannot be assigned a value", 2),
    ],
)
def test_what_does_not_compile(source: str, kind: str, reason: str, at: int) -> None:
    what, *rest, place = failed(source)
    assert (what, rest) == ("compile error", [kind, reason])
    assert abs(place - at) <= 4


@pytest.mark.parametrize(
    ("source", "kind", "reason"),
    [
        ("1 / 0", "arithmetic_exception", "/ by zero"),
        ("params.a.b", "null_pointer_exception", "cannot access member [b] from a null def reference"),
        ("Processors.bytes('8')", "parse_exception", "failed to parse setting [Ingest Field] with value [8]"),
        ("Processors.json('{')", "illegal_argument_exception", "the value is no JSON"),
        ("Processors.json(['t': '[]'], 't')", "illegal_argument_exception", "cannot add non-map fields"),
        ("[1][3]", "index_out_of_bounds_exception", "Index 3 out of bounds for length 1"),
        ("'a' * 2", "class_cast_exception", "Cannot apply [*] operation to types [java.lang.String] and "),
        ("1 ? 2 : 3", "class_cast_exception", "Cannot cast from [java.lang.Long] to [boolean]."),
        (
            "ZonedDateTime.parse('2020-03-01').month.getDisplayName(Locale.US, Locale.US)",
            "class_cast_exception",
            "a TextStyle is expected",
        ),
        (
            "def unit = ChronoUnit.DAYS; unit.getDisplayName(TextStyle.FULL, Locale.US)",
            "illegal_argument_exception",
            "[DAYS] has no display name",
        ),
        ("int x = 3.5; x", "class_cast_exception", "Cannot cast from [java.lang.Double] to [int]."),
        ("Integer.parseInt('x')", "number_format_exception", 'For input string: "x"'),
        ("'x'.foo()", "illegal_argument_exception", "dynamic method [java.lang.String, foo/0] not found"),
        ("[].sort(1, 2, 3)", "illegal_argument_exception", "method [java.util.ArrayList, sort] takes other"),
        ("[1].sort((a) -> 1); [1, 2].sort((a) -> 1)", "illegal_argument_exception", "a lambda takes [1]"),
        ("params.map.keySet().removeIf(k -> true)", "unsupported_operation_exception", "the list cannot be"),
    ],
)
def test_what_fails(source: str, kind: str, reason: str) -> None:
    what, found, text, _ = failed(source)
    assert (what, found) == ("runtime error", kind)
    assert text.startswith(reason)


# Python's objects are behind the values, and none of their attributes is within reach.
@pytest.mark.parametrize(
    "source",
    [
        "''.__class__",
        "'' .getClass()",
        "[].__class__.__mro__",
        "1 .__init__",
        "params.list.__reduce__()",
        "params.list.format('{0.__class__}')",
        "'{0.__class__}'.format(1)",
        "ZonedDateTime.parse('2020-01-01').resolved()",
        "ZonedDateTime.parse('2020-01-01').ms",
        "params.list.script_methods",
        "[1].forEach(x -> x.__class__)",
        "ChronoUnit.DAYS.value.__class__",
    ],
)
def test_nothing_of_python_is_within_reach(source: str) -> None:
    assert failed(source)[1] in ("illegal_argument_exception", "class_cast_exception")


@pytest.mark.parametrize(
    "source",
    [
        "while (true) {}",
        "for (;;) { params.n }",
        "def s = 'a'; while (true) { s += s }",
        "def s = 'aaaaaaaaaa'; for (int i = 0; i < 30; i++) { s = s.replace('a', 'aa') }",
        "def l = [1]; while (true) { l.addAll(l) }",
        "def l = [1]; for (int i = 0; i < 60; i++) { l = [l, l] } return l",
        "def l = [1]; for (int i = 0; i < 60; i++) { l = [l, l] } return l == l",
        "def l = [1]; for (int i = 0; i < 60; i++) { l = [l, l] } return l.toString()",
        "def l = []; l.add(l); return l",
        "def m = [:]; m.m = m; return m.toString()",
        "def l = []; for (int i = 0; i < 3000; i++) { l.add(i) } while (true) { l.sort((a, b) -> b - a) }",
        "def l = []; for (int i = 0; i < 3000; i++) { l.add('x') } while (true) { l.contains('y') }",
        "def l = [1, 2, 3]; l.forEach(x -> { while (true) {} })",
        "def x = " + "-" * 5_000 + "1",
        "def x = " + "[" * 5_000 + "]" * 5_000,
        "{" * 5_000 + "}" * 5_000,
        "if (true) " * 5_000 + "1",
        "1" + " + 1" * 5_000,
        "true" + " ? true" * 3_000 + " : true" * 3_000,
        "params" + ".a" * 5_000,
        "x" * 70_000,
    ],
    ids=range(21),
)
def test_every_script_ends(source: str) -> None:
    with pytest.raises(SearchError) as caught:
        Script(source, "painless", PARAMS, VALUES).run({})
    assert caught.value.kind == "script_exception"


def test_params_are_of_one_run() -> None:
    script = Script("params.list.add('c'); params.list.size()", "painless", PARAMS, VALUES)
    assert [script.run({}), script.run({})] == [4, 4]


def test_an_update_changes_what_it_is_given() -> None:
    ctx = {"_source": {"n": 1, "tags": ["a"]}, "op": "index"}
    source = "ctx._source.n += params.n; ctx._source.tags.add('b'); ctx._source.remove('x'); ctx.op = 'none'"
    Script(source, "painless", {"n": 2}, UPDATE).run({"ctx": ctx})
    assert ctx == {"_source": {"n": 3, "tags": ["a", "b"]}, "op": "none"}


@pytest.mark.parametrize(
    "body", [1, {}, {"source": 1}, {"source": ""}, {"source": "1", "x": 1}, {"source": "1", "params": []},
             {"source": "1", "lang": "groovy"}, {"source": "1", "id": "a"}, {"id": "a"}],
)  # fmt: skip
def test_what_is_no_script(body: Any) -> None:
    with pytest.raises(SearchError) as caught:
        parse_script(body, VALUES)
    assert caught.value.status in (400, 404)
