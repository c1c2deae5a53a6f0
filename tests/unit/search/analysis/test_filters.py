"""Token filters, tokenizers and character filters, each through `_analyze`."""

from typing import Any

import pytest

from graphdb.search.analysis import Analyzers, analyze, token_filters
from graphdb.search.errors import SearchError


def terms(text: str, tokenizer: Any = "whitespace", filters: Any = (), char_filters: Any = ()) -> list[str]:
    body = {"tokenizer": tokenizer, "filter": list(filters), "char_filter": list(char_filters), "text": text}
    return [token["token"] for token in analyze(body, None)["tokens"]]


FILTERS: dict[str, tuple[Any, str, list[str]]] = {
    "uppercase": ("uppercase", "straße ŉ", ["STRASSE"[:4] + "ßE", "ŉ"]),
    "lowercase": ("lowercase", "ΣΑΣ İx", ["σασ", "ix"]),
    "turkish": ({"type": "lowercase", "language": "turkish"}, "IĞDIR İZ", ["ığdır", "iz"]),
    "asciifolding": ("asciifolding", "açaí Łódź “x” ﬁ Ⓐ², ø", ["acai", "Lodz", '"x"', "fi", "A2,", "o"]),
    "asciifolding kept": ({"type": "asciifolding", "preserve_original": True}, "é a", ["e", "é", "a"]),
    "stop": ("stop", "The the fox", ["The", "fox"]),
    "stop, case ignored": ({"type": "stop", "ignore_case": True}, "The the fox", ["fox"]),
    "stemmer": ({"type": "stemmer", "language": "english"}, "foxes jumping", ["fox", "jump"]),
    "possessive": ({"type": "stemmer", "language": "possessive_english"}, "dog's dogs'", ["dog", "dogs'"]),
    "snowball": ({"type": "snowball", "language": "English"}, "foxes quickly", ["fox", "quick"]),
    "ngram": ("ngram", "fox", ["f", "fo", "o", "ox", "x"]),
    "edge_ngram": ("edge_ngram", "fox", ["f"]),
    "multiplexer": (
        {"type": "multiplexer", "filters": ["lowercase", "lowercase, porter_stem"]},
        "Foxes RUN",
        ["Foxes", "foxes", "fox", "RUN", "run"],
    ),
    "multiplexer, original gone": (
        {"type": "multiplexer", "filters": ["stop", "uppercase"], "preserve_original": "false"},
        "the Fox",
        ["THE", "Fox", "FOX"],
    ),
    "edge_ngram of type": ({"type": "edge_ngram"}, "fox", ["f", "fo"]),
    "edge_ngram, original kept": (
        {"type": "edge_ngram", "min_gram": 2, "max_gram": 2, "preserve_original": True},
        "fox ab a",
        ["fo", "fox", "ab", "a"],
    ),
    "edge_ngram from behind": ({"type": "edge_ngram", "max_gram": 2, "side": "back"}, "fox", ["x", "ox"]),
    "shingle": ("shingle", "a b c", ["a", "a b", "b", "b c", "c"]),
    "shingle alone": (
        {"type": "shingle", "max_shingle_size": 3, "output_unigrams": False, "token_separator": "+"},
        "a b c",
        ["a+b", "a+b+c", "b+c"],
    ),
    "keep": ({"type": "keep", "keep_words": ["fox", "Dog"]}, "a fox dog", ["fox"]),
    "keep, case ignored": (
        {"type": "keep", "keep_words": ["fox", "Dog"], "keep_words_case": True},
        "a Fox dog",
        ["Fox", "dog"],
    ),
    "stemmer_override": (
        {"type": "stemmer_override", "rules": ["running, runs => run", "mice=>mouse"]},
        "running mice runs run",
        ["run", "mouse", "run", "run"],
    ),
    "pattern_capture": (
        {"type": "pattern_capture", "patterns": [r"([^@]+)", r"(\p{L}+)", r"(\d+)", "@(.+)"]},
        "john-smith_123@foo.com",
        ["john-smith_123@foo.com", "john", "john-smith_123", "smith", "123", "foo", "foo.com", "com"],
    ),
    "pattern_capture alone": (
        {"type": "pattern_capture", "patterns": ["(a)(b)"], "preserve_original": False},
        "ab c",
        ["a", "b", "c"],
    ),
    "common_grams": (
        {"type": "common_grams", "common_words": ["the", "in"]},
        "the rain in spain falls",
        ["the", "the_rain", "rain", "rain_in", "in", "in_spain", "spain", "falls"],
    ),
    "common_grams of a query": (
        {"type": "common_grams", "common_words": ["THE", "in"], "ignore_case": True, "query_mode": True},
        "the rain in spain falls",
        ["the_rain", "rain_in", "in_spain", "falls"],
    ),
    "arabic_normalization": (
        "arabic_normalization",
        "آجن أحمد فاطمة رَوبرتـــ بنى",
        ["اجن", "احمد", "فاطمه", "روبرت", "بني"],
    ),
    "german_normalization": (
        "german_normalization",
        "über ueber Goethe quelle neue bauen Straße aee",
        ["uber", "uber", "Gothe", "quelle", "neue", "bauen", "Strasse", "ae"],
    ),
    "persian_normalization": ("persian_normalization", "های کشاندن كتابۀ هٔ", ["هاي", "كشاندن", "كتابه", "ه"]),
    "scandinavian_folding": (
        "scandinavian_folding",
        "blåbærsyltetøj blaabaersyltetoej Räksmörgås aaa",
        ["blabarsyltetoj", "blabarsyltetoj", "Raksmorgas", "aa"],
    ),
    "scandinavian_normalization": (
        "scandinavian_normalization",
        "räksmörgås raeksmoergaas AEro aaa",
        ["ræksmørgås", "ræksmørgås", "Æro", "åa"],
    ),
    "serbian_normalization": (
        "serbian_normalization",
        "ђура džеп њушка žаба",
        ["djura", "dzep", "njuska", "zaba"],
    ),
    "sorani_normalization": (
        "sorani_normalization",
        "\u0643\u064a \u0647\u200c\u0647 \u0631\u0631 \u06be \u0640\u0631",
        ["\u06a9\u06cc", "\u06d5\u06d5", "\u0695\u0631", "\u0647", "\u0695"],
    ),
    "cjk_width": ("cjk_width", "Ｔｅｓｔ１ ｼｰｻｲﾄﾞ", ["Test1", "シーサイド"]),
    "delimited_payload": ("delimited_payload", "the|0 fox|5.5 x", ["the", "fox", "x"]),
    "classic": ("classic", "I.B.M. dog's a.b.c", ["IBM", "dog", "a.b.c"]),
    "flatten_graph": ("flatten_graph", "a b", ["a", "b"]),
    "word_delimiter": (
        "word_delimiter",
        "Neil's-Super-Duper-XL500--42+AutoCoder -- plain",
        ["Neil", "Super", "Duper", "XL", "500", "42", "Auto", "Coder", "plain"],
    ),
    "word_delimiter_graph joined": (
        {"type": "word_delimiter_graph", "catenate_words": True, "preserve_original": True},
        "Wi-Fi4 x",
        ["Wi-Fi4", "WiFi", "Wi", "Fi", "4", "x"],
    ),
    "word_delimiter_graph, all joined": (
        {"type": "word_delimiter_graph", "catenate_all": True, "generate_word_parts": False},
        "a-b-12",
        ["12", "ab12"],
    ),
    "word_delimiter_graph, whole numbers and cases": (
        {"type": "word_delimiter_graph", "split_on_case_change": False, "split_on_numerics": False},
        "PowerShot500 j2se it's",
        ["PowerShot500", "j2se", "it"],
    ),
    "word_delimiter_graph, other kinds": (
        {
            "type": "word_delimiter_graph",
            "type_table": ["$ => DIGIT", "\\u002D => ALPHA"],
            "protected_words": ["b+c"],
        },
        "$5 a-b b+c",
        ["$5", "a-b", "b+c"],
    ),
    "unique": ("unique", "the fox the", ["the", "fox"]),
    "trim": ("trim", "fox", ["fox"]),
    "truncate": ({"type": "truncate", "length": 3}, "jumping fox", ["jum", "fox"]),
    "length": ({"type": "length", "min": 2, "max": 3}, "a fox jumps to", ["fox", "to"]),
    "reverse": ("reverse", "fox", ["xof"]),
    "elision": ("elision", "j'examine l\u2019avion d x'y", ["examine", "avion", "d", "x'y"]),
    "elision of others": (
        {"type": "elision", "articles": ["x"], "articles_case": True},
        "X'y l'a",
        ["y", "l'a"],
    ),
    "apostrophe": ("apostrophe", "Istanbul'a x", ["Istanbul", "x"]),
    "limit": ({"type": "limit", "max_token_count": 2}, "a b c", ["a", "b"]),
    "pattern_replace": (
        {"type": "pattern_replace", "pattern": r"(\w+)-(\w+)", "replacement": "$2_$1"},
        "a-b c",
        ["b_a", "c"],
    ),
    "pattern_replace once": (
        {"type": "pattern_replace", "pattern": "o", "replacement": "\\$", "all": False},
        "foo",
        ["f$o"],
    ),
    "decimal_digit": ("decimal_digit", "٣x", ["3x"]),
    "fingerprint": ("fingerprint", "b a b", ["a b"]),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filter(name: str) -> None:
    definition, text, expected = FILTERS[name]
    assert terms(text, filters=[definition]) == expected


def test_keywords_are_not_stemmed() -> None:
    marker = {"type": "keyword_marker", "keywords": ["jumping"]}
    by_pattern = {"type": "keyword_marker", "keywords_pattern": "j.*"}
    for definition in (marker, by_pattern):
        assert terms("running jumping", filters=[definition, "porter_stem"]) == ["run", "jumping"]
    repeated = ["keyword_repeat", "porter_stem", "remove_duplicates"]
    assert terms("running fox", filters=repeated) == ["running", "run", "fox"]


def test_a_chain_that_multiplies_tokens_is_bounded() -> None:
    with pytest.raises(SearchError, match=r"more than \[1000000\] tokens of one text"):
        terms("x", filters=["keyword_repeat"] * 100)


def test_the_grams_of_one_text_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_filters, "_GRAMS_MAX", 20)
    assert len(terms("a b c d", filters=["ngram"])) == 4
    with pytest.raises(SearchError, match=r"more than \[20\]"):
        terms("abcdefghijkl mnopqrs t", filters=["ngram"])


def test_shingles_fill_holes() -> None:
    tokens = analyze(
        {"tokenizer": "standard", "filter": ["stop", "shingle"], "text": "fox jumps a lazy dog"}, None
    )["tokens"]
    shingles = [(t["token"], t["position"], t["positionLength"]) for t in tokens if t["type"] == "shingle"]
    assert shingles == [
        *[("fox jumps", 0, 2), ("jumps _", 1, 2), ("_ lazy", 2, 2), ("lazy dog", 3, 2)],
    ]


def test_unique_closes_holes() -> None:
    tokens = analyze({"tokenizer": "whitespace", "filter": ["unique"], "text": "this test with test x"}, None)
    assert [token["position"] for token in tokens["tokens"]] == [0, 1, 2, 3]


TOKENIZERS: dict[str, tuple[Any, str, list[str]]] = {
    "letter": ("letter", "You're 2nd-best", ["You", "re", "nd", "best"]),
    "lowercase": ("lowercase", "You're É2", ["you", "re", "é"]),
    "whitespace": ("whitespace", "a\u00a0b c\u2003d\n", ["a\u00a0b", "c", "d"]),
    "keyword": ("keyword", "New York", ["New York"]),
    "pattern": ("pattern", "The foo_bar_size's default", ["The", "foo_bar_size", "s", "default"]),
    "pattern, group": (
        {"type": "pattern", "pattern": r'"((?:\\"|[^"]|\\")+)"', "group": 1},
        '"value", "value with embedded \\" quote"',
        ["value", 'value with embedded \\" quote'],
    ),
    "ngram": ("ngram", "Fox", ["F", "Fo", "o", "ox", "x"]),
    "ngram of letters": (
        {"type": "ngram", "min_gram": 3, "max_gram": 3, "token_chars": ["letter", "digit"]},
        "2 Quick Foxes.",
        ["Qui", "uic", "ick", "Fox", "oxe", "xes"],
    ),
    "edge_ngram": ("edge_ngram", "Quick Fox", ["Q", "Qu"]),
    "edge_ngram of words": (
        {"type": "edge_ngram", "min_gram": 2, "max_gram": 10, "token_chars": ["letter", "digit"]},
        "2 Quick Fox",
        ["Qu", "Qui", "Quic", "Quick", "Fo", "Fox"],
    ),
    "custom characters": (
        {"type": "ngram", "token_chars": ["letter", "custom"], "custom_token_chars": "-]"},
        "a- b]",
        ["a", "a-", "-", "b", "b]", "]"],
    ),
    "char_group": (
        {"type": "char_group", "tokenize_on_chars": ["whitespace", "-", "\\n"]},
        "The QUICK brown-fox\nx",
        ["The", "QUICK", "brown", "fox", "x"],
    ),
    "path_hierarchy": ("path_hierarchy", "/one/two/three", ["/one", "/one/two", "/one/two/three"]),
    "path_hierarchy changed": (
        {"type": "path_hierarchy", "delimiter": "-", "replacement": "/", "skip": 2},
        "one-two-three-four-five",
        ["/three", "/three/four", "/three/four/five"],
    ),
    "path_hierarchy reversed": (
        {"type": "path_hierarchy", "delimiter": "-", "replacement": "/", "skip": 2, "reverse": True},
        "one-two-three-four-five",
        ["one/two/three/", "two/three/", "three/"],
    ),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizer(name: str) -> None:
    definition, text, expected = TOKENIZERS[name]
    assert terms(text, definition) == expected


def test_what_a_multiplexer_makes_of_a_token_stands_in_its_place() -> None:
    settings = {
        "analyzer": {"a": {"tokenizer": "whitespace", "filter": ["m", "lowercase"]}},
        "filter": {
            "m": {"type": "multiplexer", "filters": ["long, porter_stem", "", "grams"]},
            "long": {"type": "length", "min": 4},
            "grams": {"type": "edge_ngram", "min_gram": 2, "max_gram": 2},
        },
    }
    tokens = Analyzers.of(settings).analyzer("a").detailed("the Foxes")
    assert [(token.term, token.position, token.start_offset) for token in tokens] == [
        ("the", 0, 0), ("th", 0, 0), ("foxes", 1, 4), ("fox", 1, 4), ("fo", 1, 4)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        (["nowhere"], "nowhere"),
        (["m"], "may not name the multiplexer"),
        (["lowercase," * 101], "names more than"),
        (["g,g,g,g", "g,g,g,g"], "more than .* tokens"),
    ],
)
def test_a_multiplexer_that_cannot_be(filters: list[str], reason: str) -> None:
    settings = {
        "analyzer": {"a": {"tokenizer": "keyword", "filter": ["m"]}},
        "filter": {
            "m": {"type": "multiplexer", "filters": filters},
            "g": {"type": "edge_ngram", "min_gram": 1, "max_gram": 200},
        },
    }
    with pytest.raises(SearchError, match=reason):
        Analyzers.of(settings).analyzer("a").tokens("x" * 200)


CHAR_FILTERS: dict[str, tuple[Any, str, str]] = {
    "html_strip": ("html_strip", "<p>I&apos;m so <b>happy</b>!</p>", "\nI'm so happy!\n"),
    "html comments": ("html_strip", "a<!-- <b> -->b<script>var x;</script>c<br/>d", "ab\nc\nd"),
    "html left open": ("html_strip", "1 < 2 &amp; &nope; x <!-- y", "1 < 2 & &nope; x "),
    "html, declarations left open": ("html_strip", "a" + "<!b <?c " * 100_000, "a"),
    "html, scripts left open": ("html_strip", "a" + "<script b=1 <style " * 50_000, "a\n"),
    "html, tags kept": ({"type": "html_strip", "escaped_tags": ["b"]}, "<b>x</b><i>y</i>", "<b>x</b>y"),
    "mapping": (
        {"type": "mapping", "mappings": ["a => x", "ab => yy", "\\u0020 => _", "c =>"]},
        "abac b",
        "yyx_b",
    ),
    "pattern_replace": (
        {"type": "pattern_replace", "pattern": r"(\d+)-(?=\d)", "replacement": "$1_"},
        "123-456-789",
        "123_456_789",
    ),
}


@pytest.mark.parametrize("name", CHAR_FILTERS)
def test_char_filter(name: str) -> None:
    definition, text, expected = CHAR_FILTERS[name]
    assert terms(text, "keyword", char_filters=[definition]) == [expected]


def test_a_malformed_mapping() -> None:
    with pytest.raises(SearchError, match=r"Invalid Mapping Rule : \[ab\]"):
        terms("x", char_filters=[{"type": "mapping", "mappings": ["ab"]}])


def graph(
    rules: list[str], text: str, kind: str = "synonym_graph", **more: Any
) -> list[tuple[str, int, int]]:
    definition = {"type": kind, "synonyms": rules, **more}
    tokens = analyze({"tokenizer": "whitespace", "filter": [definition], "text": text}, None)["tokens"]
    return [(token["token"], token["position"], token.get("positionLength", 1)) for token in tokens]


def test_synonym_graph() -> None:
    assert graph(["wi fi, wifi, hot spot"], "a wi fi b") == [
        *[
            ("a", 0, 1),
            ("wifi", 1, 3),
            ("hot", 1, 1),
            ("wi", 1, 2),
            ("spot", 2, 2),
            ("fi", 3, 1),
            ("b", 4, 1),
        ],
    ]
    assert graph(["dns => domain name system"], "dns is") == [
        *[("domain", 0, 1), ("name", 1, 1), ("system", 2, 1), ("is", 3, 1)],
    ]


def test_flat_synonyms() -> None:
    assert graph(["fast, quick"], "fast fox", "synonym") == [("fast", 0, 1), ("quick", 0, 1), ("fox", 1, 1)]
    assert graph(["dns => domain name"], "dns is", "synonym") == [
        ("domain", 0, 1),
        ("is", 1, 1),
        ("name", 1, 1),
    ]
    assert graph(["wi fi => wifi"], "wi fi x", "synonym") == [("wifi", 0, 1), ("x", 1, 1)]


def test_synonym_rules() -> None:
    assert graph(["a, b"], "b", "synonym", expand=False) == [("a", 0, 1)]
    assert graph(["# no rule", "", "x\\,y => z"], "x,y", "synonym") == [("z", 0, 1)]
    assert graph(["new york => ny", "new => n"], "new new york", "synonym") == [("n", 0, 1), ("ny", 1, 1)]
    with pytest.raises(SearchError, match="failed to build synonyms"):
        graph(["a => b => c"], "a")
    assert graph(["a => b => c"], "a", lenient=True) == [("a", 0, 1)]


def test_synonyms_are_analyzed_by_what_comes_before() -> None:
    settings = {
        "analyzer": {"x": {"tokenizer": "standard", "filter": ["lowercase", "porter_stem", "s"]}},
        "filter": {"s": {"type": "synonym", "synonyms": ["Foxes => Jumping"]}},
    }
    assert Analyzers.of(settings).analyzer("x").tokens("a FOX") == (["a", "jump"], [0, 1])


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ({"type": "edge_ngram", "max_gram": 100_000}, r"\[max_gram\] must be <= 1024"),
        ({"type": "shingle", "max_shingle_size": 1000}, r"\[max_shingle_size\] must be <= 100"),
        ({"type": "synonym", "synonyms": ["a, " * 2000]}, "failed to build synonyms"),
        ({"type": "pattern_replace", "pattern": "a", "replacement": "b" * 2000}, "replacement is longer"),
        (
            {"type": "pattern_replace", "pattern": "a" * 2000},
            "pattern of 2000 characters is longer than 1000",
        ),
        ({"type": "pattern_replace", "pattern": "(((a{99}){99}){99}){99}"}, "repeats its parts too often"),
        ({"type": "pattern_replace", "pattern": "(a)", "replacement": "$2"}, "No group 2"),
    ],
)
def test_what_would_be_too_much_is_an_error(definition: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        terms("a", filters=[definition])


def test_parts_of_words_are_a_graph() -> None:
    body = {
        "tokenizer": "whitespace",
        "filter": [{"type": "word_delimiter_graph", "catenate_all": True}],
        "text": "to Wi-Fi go",
    }
    shown = [
        (one["token"], one["start_offset"], one["end_offset"], one["position"], one.get("positionLength", 1))
        for one in analyze(body, None)["tokens"]
    ]
    assert shown == [
        ("to", 0, 2, 0, 1), ("WiFi", 3, 8, 1, 2), ("Wi", 3, 5, 1, 1), ("Fi", 6, 8, 2, 1), ("go", 9, 11, 3, 1)
    ]  # fmt: skip


def test_characters_in_pairs() -> None:
    def pairs(text: str, **parameters: Any) -> list[tuple[str, str, int]]:
        body = {"tokenizer": "standard", "filter": [{"type": "cjk_bigram", **parameters}], "text": text}
        return [(one["token"], one["type"], one["position"]) for one in analyze(body, None)["tokens"]]

    assert pairs("東京都 x 本") == [
        ("東京", "<DOUBLE>", 0),
        ("京都", "<DOUBLE>", 1),
        ("x", "<ALPHANUM>", 2),
        ("本", "<SINGLE>", 3),
    ]
    assert pairs("東京", output_unigrams=True) == [
        ("東", "<SINGLE>", 0),
        ("東京", "<DOUBLE>", 0),
        ("京", "<SINGLE>", 1),
    ]
    assert pairs("東京 한글", ignored_scripts=["han"]) == [
        ("東", "<IDEOGRAPHIC>", 0),
        ("京", "<IDEOGRAPHIC>", 1),
        ("한글", "<DOUBLE>", 2),
    ]
    assert [
        one["token"] for one in analyze({"analyzer": "cjk", "text": "the Ｔest 東京"}, None)["tokens"]
    ] == [
        "test",
        "東京",
    ]


def test_kinds_of_tokens_that_are_kept() -> None:
    for mode, expected in (("include", ["1"]), ("exclude", ["a", "b"])):
        kept = {"type": "keep_types", "types": ["<NUM>"], "mode": mode}
        assert terms("a 1 b", "standard", [kept]) == expected


def test_analysis_step_by_step() -> None:
    body = {
        "char_filter": ["html_strip"],
        "tokenizer": "whitespace",
        "filter": ["lowercase", {"type": "stop", "stopwords": ["the"]}],
        "text": ["<b>The</b> Fox", "é"],
        "explain": True,
        "attributes": ["keyword"],
    }
    detail = analyze(body, None)["detail"]
    assert detail["custom_analyzer"] is True
    assert detail["charfilters"] == [{"name": "html_strip", "filtered_text": ["The Fox", "é"]}]
    assert detail["tokenizer"]["name"] == "whitespace"
    assert [one["token"] for one in detail["tokenizer"]["tokens"]] == ["The", "Fox", "é"]
    assert [step["name"] for step in detail["tokenfilters"]] == ["lowercase", "__anonymous__stop"]
    assert detail["tokenfilters"][1]["tokens"][0] == {
        "token": "fox", "start_offset": 11, "end_offset": 14, "type": "word", "position": 1, "keyword": False
    }  # fmt: skip
    named = analyze({"analyzer": "standard", "text": "é", "explain": True}, None)["detail"]
    assert named == {
        "custom_analyzer": False,
        "analyzer": {
            "name": "standard",
            "tokens": [
                {
                    "token": "é", "start_offset": 0, "end_offset": 1, "type": "<ALPHANUM>", "position": 0,
                    "bytes": "[c3 a9]", "keyword": False, "positionLength": 1, "termFrequency": 1,
                }
            ],
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    "filter_",
    [
        {"type": "keep"},
        {"type": "keep_types", "types": ["x"], "mode": "some"},
        {"type": "stemmer_override", "rules": ["a"]},
        {"type": "pattern_capture"},
        {"type": "common_grams"},
        {"type": "cjk_bigram", "ignored_scripts": ["latin"]},
        {"type": "delimited_payload", "delimiter": "--"},
        {"type": "word_delimiter", "type_table": ["ab => DIGIT"]},
    ],
)
def test_filters_that_cannot_be(filter_: Any) -> None:
    with pytest.raises(SearchError) as error:
        terms("a", filters=[filter_])
    assert error.value.kind == "illegal_argument_exception"


def test_shingles_of_tokens_that_are_not_in_their_order() -> None:
    filters: list[str | dict[str, Any]] = [
        {"type": "synonym_graph", "synonyms": ["a, b c => d"]},
        {"type": "min_hash", "hash_count": 2, "bucket_count": 3, "hash_set_size": 1},
        {"type": "dictionary_decompounder", "word_list": ["ab"]},
        {"type": "condition", "filter": ["lowercase"], "script": {"source": "token.term.length() < 3"}},
        {"type": "word_delimiter_graph", "catenate_all": True},
        {"type": "shingle", "max_shingle_size": 3},
    ]
    assert analyze({"tokenizer": "standard", "filter": filters, "text": "B b bb-c"}, None)["tokens"]
