"""Random RDF terms and quads: all kinds of RDF 1.2, with the characters that serialisers trip over."""

from hypothesis import strategies as st
from pyoxigraph import BaseDirection, BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

__all__ = ["literals", "quads"]

NASTY = (
    "\x00\x01\x08\t\n\x0b\x0c\r\x1f \"'\\<>&]`#.,;\x7f\x80\x85\x9f\xa0\u2028\ud7ff\ue000\ufffd\ufffe\uffff😀"
)

texts = st.text(st.sampled_from(NASTY) | st.characters(exclude_categories=["Cs"]), max_size=8)
# No C0 controls or non-characters, which XML cannot hold.
xml_texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"]) | st.sampled_from("\t\n\r"), max_size=8
)

iris = st.sampled_from(
    ["http://e/a", "http://e/b#c", "urn:x:y", "http://é.example/ü?q=1&r='2'", "http://e/"]
).map(NamedNode)
predicates = st.sampled_from(["http://e/p", "http://e/p#q", "urn:x:pé"]).map(NamedNode)
blank_nodes = st.sampled_from(["a", "b0", "c"]).map(BlankNode)
languages = st.sampled_from(["en", "de-AT", "zh-Hant-CN"])
directions = st.sampled_from([BaseDirection.LTR, BaseDirection.RTL])
datatypes = st.sampled_from(["http://www.w3.org/2001/XMLSchema#integer", "http://e/type"]).map(NamedNode)


def literals(values: st.SearchStrategy[str]) -> st.SearchStrategy[Literal]:
    return st.one_of(
        st.builds(Literal, values),
        st.builds(lambda value, language: Literal(value, language=language), values, languages),
        st.builds(
            lambda value, language, direction: Literal(value, language=language, direction=direction),
            values,
            languages,
            directions,
        ),
        st.builds(lambda value, datatype: Literal(value, datatype=datatype), values, datatypes),
    )


def quads(
    values: st.SearchStrategy[str] = texts, *, graphs: bool = True, triple_terms: bool = True
) -> st.SearchStrategy[list[Quad]]:
    """Lists of up to eight quads; without graphs all in the default graph."""
    plain = iris | blank_nodes | literals(values)
    nested = st.recursive(
        plain, lambda inner: st.builds(Triple, iris | blank_nodes, predicates, inner), max_leaves=3
    )
    names = st.just(DefaultGraph()) | iris | blank_nodes if graphs else st.just(DefaultGraph())
    objects = nested if triple_terms else plain
    return st.lists(st.builds(Quad, iris | blank_nodes, predicates, objects, names), max_size=8)
