"""Plain INSERT DATA and DELETE DATA, read without the grammar, against the grammar."""

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Quad, RdfFormat, serialize

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded, QuerySyntaxError
from graphdb.planning.complexity import Complexity, measure
from graphdb.planning.gate import check, read_update
from graphdb.sparql import plain_data
from graphdb.sparql.parser import ground_quads, parse_update
from graphdb.sparql.plain_data import OneTriple, plain_update
from graphdb.sparql.syntax import DeleteData, InsertData, Update
from graphdb.store.stored_form import stored_form

PLAIN = [
    "INSERT DATA { <http://e/s> <http://e/p> <http://e/o> }",
    "insert data{<http://e/s><http://e/p><http://e/o>}",
    "DELETE DATA { <http://e/s> <http://e/p> 1 . <http://e/s> <http://e/p> -1.5, 2e+7 ; a true . }\n",
    "PREFIX e: <http://e/> PREFIX : <http://e#> INSERT DATA { e:s :p \"x\"@de-CH, 'y' . }".replace("'", '"'),
    'PREFIX e: <http://e/>\nINSERT DATA { _:a e:p _:b . _:b e:p "01"^^e:date, ""^^<http://e/t>, "#" }',
    "INSERT DATA { }",
]
PIECES = [
    *(
        "<http://e/s>",
        "<http://e/p>",
        "<urn:a:b>",
        "<http://e/é?x=1#y>",
        "<http://e/a/../b/./c>",
        "<a>",
        "<>",
    ),
    *("<http://e:x/>", "<http://[::1]/>", "<http://e/%zz>", "<http://e/%20>", "<e:>", "<1:a>", "<HTTP://E/>"),
    *("e:s", ":p", "e:1", "e:a-b", "e:a-", "e:a.b", "e:", "u:s", "e:%20", "e:a:b", ":_", "e:é"),
    *(
        '"x"',
        '""',
        '"""x"""',
        "'x'",
        '"é\u00a0"',
        '"\\n"',
        '"\t"',
        '"a\nb"',
        '"\ud800"',
        '"\x00"',
        '"\ufffe"',
    ),
    *(
        '"x"@en',
        '"x"@EN-us',
        '"x"@en--ltr',
        '"x"@waytoolongtag',
        '"x"@i-x',
        '"x" @en',
        '"x"^^e:t',
        '"x"^^"y"',
    ),
    *(
        '"x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>',
        '"01"^^<urn:t>',
        '"x"^^ e:t',
        '"x"^^rdf:t',
    ),
    *("1", "-1", "+01", "1.0", "1.", ".5", "1e5", "1.5E-3", "1.e5", "1a", "--1", "1 . 5"),
    *("a", "A", "true", "false", "TRUE", "trueish", "_:a", "_:b1", "_:1", "_:a.b", "_:é", "?v", "[]", "()"),
    *(
        ".",
        ".",
        ".",
        ".",
        ";",
        ",",
        "..",
        "<<",
        "{",
        "}",
        "GRAPH",
        "@prefix",
        "#",
        "\u00a0",
        "PREFIX",
        "\ufeff",
    ),
]
IRIS = st.sampled_from(["<http://e/s>", "e:s", ":p", "<urn:a:b>", "<http://e/é?x=1#y>", "<HTTP://E/a/../b>"])
OBJECTS = IRIS | st.sampled_from(
    [
        "_:a",
        '"x"',
        '"x"@en',
        '"x"@DE-ch',
        '"x"^^e:t',
        "1",
        "-01.50",
        "1e5",
        "true",
        '""',
        '"{#}<a>"',
        '"\ud800"',
    ]
)
NUMBERS = count()
SPACES = st.sampled_from([*[" "] * 9, "", "\n", "\t\r\n"])
USUAL = "PREFIX e: <http://e/> PREFIX : <http://e#>"


@st.composite
def blocks(draw: st.DrawFn) -> str:
    """Mostly triples as SPARQL has them, with a piece of anything here and there."""
    words: list[str] = []
    for _ in range(draw(st.integers(0, 3))):
        words += [draw(IRIS | st.just("_:a")), draw(IRIS | st.just("a")), draw(OBJECTS)]
        while draw(st.integers(0, 3)) == 0:
            words += [draw(st.sampled_from([";", ","])), draw(IRIS), draw(OBJECTS)]
        words.append(draw(st.sampled_from([".", ".", ".", "", ";", " ; ."])))
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 1, 2]))):
        words.insert(draw(st.integers(0, len(words))), draw(st.sampled_from(PIECES)))
    return "".join(word + draw(SPACES) for word in words)


DECLARATIONS = st.lists(
    st.sampled_from(
        [
            *("PREFIX e: <http://e/>", "prefix : <http://e#>", "PREFIX e:<urn:x:>", "PREFIX e: <a>"),
            *("BASE <http://b/>", "PREFIX e: <http://e/\\u0041>", "PREFIX x-y: <http://[x>", "VERSION '1.2'"),
        ]
    )
    | st.just(USUAL),
    max_size=3,
).map(" ".join)


@st.composite
def texts(draw: st.DrawFn) -> str:
    head = USUAL if draw(st.integers(0, 3)) else draw(DECLARATIONS)
    verb = draw(
        st.sampled_from([*["INSERT DATA", "DELETE DATA", "insert\ndata"] * 4, "INSERT", "INSERTDATA"])
    )
    ends = [*["", " ", "\n"] * 4, ";", "}", " x", "; INSERT DATA {}"]
    space, tail = draw(SPACES), draw(st.sampled_from(ends))
    return f"{head}{draw(SPACES)}{verb}{space}{{{draw(blocks())}}}{tail}"


def counting() -> Callable[[], BlankNode]:
    numbers = iter(range(1_000_000))
    return lambda: BlankNode(f"fresh{next(numbers)}")


def parts(update: Update) -> list[object]:
    """All that planning, the audit file and messages take from an update of data."""
    found: list[object] = [update.text, update.base_iri, update.service_hosts, len(update.operations)]
    for operation in update.operations:
        assert isinstance(operation, InsertData | DeleteData)
        named: list[Quad] = list(ground_quads(update, operation, counting()))
        unnamed: list[Quad] = list(ground_quads(update, operation))
        found += [type(operation), operation.prologue, operation.block, operation.span, named, unnamed]
    return found


@pytest.mark.parametrize("text", PLAIN)
def test_the_usual_updates_are_plain(text: str) -> None:
    plain = plain_update(text, "http://base/", 100)
    assert plain is not None
    assert parts(plain) == parts(parse_update(text, "http://base/"))


# Making the texts takes most of the time: on a busy machine more than Hypothesis allows.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts(), st.sampled_from([None, "http://base/x", "no base"]))
@example('INSERT DATA { <http://e/s> <http://e/p> "x"@en--ltr }', None)
@example("DELETE DATA { _:a <http://e/p> 1 }", None)
@example("PREFIX e: <http://e/> PREFIX e: <http://f/> INSERT DATA { e:s e:s e:s }", None)
def test_a_plain_update_is_what_the_grammar_reads(text: str, base_iri: str | None) -> None:
    plain = plain_update(text, base_iri, 1000)
    if plain is not None:
        assert parts(plain) == parts(parse_update(text, base_iri))


WORDS = [piece for piece in PIECES if piece[0] in "<\"'"] + ["1", "e:s", "_:a", "a", '"{#}<a>"']


@st.composite
def triples(draw: st.DrawFn) -> str:
    """Texts of one triple without a prologue, and some that are a little more."""
    verb = draw(st.sampled_from(["INSERT DATA", "delete\tdata", "Delete Data"]))
    iris = [word for word in WORDS if word[0] == "<"]
    terms = [draw(st.sampled_from(iris)), draw(st.sampled_from(iris)), draw(st.sampled_from(WORDS))]
    ends = st.sampled_from([*["", "."] * 4, ";", "..", ". .", "@en", ",", '"', "<urn:a:b>"])
    spaces = [draw(SPACES) for _ in range(7)]
    block = "".join(word + space for word, space in zip([*terms, draw(ends)], spaces, strict=False))
    return f"{spaces[4]}{verb}{spaces[5]}{{{spaces[6]}{block}}}{draw(st.sampled_from(['', ' ', ';', ' x']))}"


@given(triples(), st.sampled_from([None, "http://base/x", "no base"]))
@example('DELETE DATA { <urn:a_:b> <urn:p> "_:x" }', None)
@example('INSERT DATA { <urn:a> <urn:p> "\u00a0\u2028\x7f\t\u0085" }', None)
@example("INSERT DATA { <urn:a\u00a0\ue000> <urn:p\x7f> <urn:é> }", None)
@example('INSERT DATA { <urn:a> <urn:p> """x""" }', None)
@example('INSERT DATA { <urn:a> <urn:p> "langString" }', None)
def test_one_triple_is_what_the_grammar_reads(text: str, base_iri: str | None) -> None:
    plain = plain_update(text, base_iri, 1000)
    if plain is not None:
        assert parts(plain) == parts(parse_update(text, base_iri))
    if isinstance(plain, OneTriple):
        assert list(ground_quads(plain, plain.operations[0])) == [plain.quad]  # type: ignore[arg-type]
        assert plain.deletes == isinstance(plain.operations[0], DeleteData)
        assert plain.line == serialize((plain.quad,), format=RdfFormat.N_QUADS)
        assert list(stored_form((plain.quad,))) == [plain.quad]


@pytest.mark.parametrize(
    "term", ["<http://e/é?x=1#y>", "<HTTP://E/a/../b>", '"x"', '""', '"{#}<a>"', '"é\t"']
)
@pytest.mark.parametrize("verb", ["INSERT DATA", "delete data"])
def test_one_triple_is_read_without_the_native_parser(
    term: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{verb} {{ <http://e/s><http://e/p> {term}. }}\n"
    expected = parts(parse_update(text, None))
    monkeypatch.setattr(plain_data, "parse", None)
    plain = plain_update(text, None, 4)
    assert plain is not None
    assert parts(plain) == expected
    assert plain_update(text, None, 3) is None


@given(texts(), st.integers(1, 12))
def test_the_gate_bounds_the_same_tokens(text: str, tokens_max: int) -> None:
    if plain_update(text, None, tokens_max) is not None:
        limits = GateLimits(max_query_tokens=tokens_max)
        # a comment is for the grammar, and no token; each is another, for trees are kept by their texts
        read_update(f"{text}#{next(NUMBERS)}", None, limits)


@given(texts())
def test_data_has_no_complexity(text: str) -> None:
    try:
        update = read_update(text, None, GateLimits())
    except (QuerySyntaxError, LimitExceeded):
        return
    if all(isinstance(operation, InsertData | DeleteData) for operation in update.operations):
        assert measure(update) == Complexity()
        check(update, GateLimits())
