"""Accept and Content-Type: which offer wins, and what is no media type at all."""

import pytest

from graphdb.errors import InvalidParameter, NotAcceptable
from serve.negotiation import MediaType, Offer, choose, parse_media_type

C14N = "http://www.w3.org/ns/rdf-canon#c14n"
OFFERS = (
    Offer(MediaType("application/sparql-results+json"), "json"),
    Offer(MediaType("application/json"), "plain-json"),
    Offer(MediaType("text/csv"), "csv"),
    Offer(MediaType("text/turtle"), "turtle"),
    Offer(MediaType("application/n-triples"), "nt"),
    Offer(MediaType("application/n-triples", frozenset({("profile", C14N)})), "c14n"),
)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        pytest.param(None, "json", id="no header"),
        pytest.param("", "json", id="empty header"),
        pytest.param("*/*", "json", id="anything"),
        pytest.param("*", "json", id="the star of old Java clients"),
        pytest.param(
            "text/html, image/gif, *; q=.2, */*; q=.2", "json", id="the whole header of old Java clients"
        ),
        pytest.param("text/turtle", "turtle", id="by name"),
        pytest.param("TEXT/Turtle", "turtle", id="case does not matter"),
        pytest.param("text/*", "csv", id="by type, in our order"),
        pytest.param("text/csv;q=0.5, text/turtle", "turtle", id="higher quality"),
        pytest.param("text/turtle;q=0.9, text/csv;q=0.91", "csv", id="two digits of quality"),
        pytest.param("text/turtle, text/csv", "turtle", id="equal quality: the one named first"),
        pytest.param("*/*, text/turtle", "turtle", id="equal quality: the more specific"),
        pytest.param(
            "text/*;q=0.8, text/turtle;q=0.1, */*;q=0.2", "csv", id="the most specific range decides"
        ),
        pytest.param("text/turtle;q=0, text/*", "csv", id="refused by name"),
        pytest.param("application/sparql-results+json;q=0, */*", "plain-json", id="anything but"),
        pytest.param("application/n-triples", "nt", id="without a profile the plain one"),
        pytest.param(f'application/n-triples; profile="{C14N}"', "c14n", id="quoted profile"),
        pytest.param(f"application/n-triples; profile={C14N};q=0.9", "c14n", id="profile without quotes"),
        pytest.param(
            f'application/n-triples;q=0.5, application/n-triples;profile="{C14N}"', "c14n", id="both"
        ),
        pytest.param("text/turtle;charset=UTF-8", "turtle", id="charset as sent"),
        pytest.param("text/turtle; version=1.2", "turtle", id="version as sent"),
        pytest.param('text/html;x="a,b;c", text/csv', "csv", id="separators in quotes"),
        pytest.param("nonsense, ;;, text/csv", "csv", id="what is malformed is passed over"),
        pytest.param("text/csv;q=high, text/turtle;q=0.1", "turtle", id="malformed quality"),
        pytest.param("text/turtle ; q=0.3 , text/csv ; q=0.4", "csv", id="white space"),
        pytest.param("text/turtle;q=1.000", "turtle", id="quality of one, at length"),
    ],
)
def test_choose(accept: str | None, chosen: str) -> None:
    assert choose(accept, OFFERS).value == chosen


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "image/*",
        "*/*;q=0",
        "text/turtle;charset=iso-8859-1",
        "text/turtle;version=1.1",
        'application/n-triples;profile="http://example/other"',
        "text/turtle;level=1",
    ],
)
def test_nothing_fits(accept: str) -> None:
    with pytest.raises(NotAcceptable) as caught:
        choose(accept, OFFERS)
    assert "text/turtle" in caught.value.offered
    assert f'application/n-triples; profile="{C14N}"' in caught.value.offered


@pytest.mark.parametrize("accept", ["text", ",", "text/", "/turtle", "text/turtle;q=2", "text/turtle;q=-1"])
def test_a_header_without_any_media_type_is_an_error(accept: str) -> None:
    with pytest.raises(InvalidParameter, match="Accept"):
        choose(accept, OFFERS)


@pytest.mark.parametrize(
    ("header", "name", "parameters"),
    [
        ("text/turtle", "text/turtle", {}),
        ("Text/Turtle; Charset=UTF-8", "text/turtle", {"charset": "utf-8"}),
        ('text/turtle;charset="utf-8"', "text/turtle", {"charset": "utf-8"}),
        (r'a/b; c="d\"e"', "a/b", {"c": 'd"e'}),
        ("a/b;", "a/b", {}),
        (" a/b ;c=D;e=F ", "a/b", {"c": "D", "e": "F"}),
    ],
)
def test_parse_media_type(header: str, name: str, parameters: dict[str, str]) -> None:
    assert parse_media_type(header) == MediaType(name, frozenset(parameters.items()))


@pytest.mark.parametrize("header", ["", "text", "a/b c", "a/b; c", "a/b; c=", 'a/b; c="d', "a b/c", "é/b"])
def test_malformed_media_type(header: str) -> None:
    with pytest.raises(ValueError, match="malformed media type"):
        parse_media_type(header)
