"""Every query and update of the W3C's SPARQL suites through our parser and through pyoxigraph's.

The suites' verdict is binding for ours: negative syntax tests are refused, everything else is read.
Where pyoxigraph decides otherwise, the case and the reason stand in PYOXIGRAPH_DIFFERS.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from pyoxigraph import Store

from graphdb.errors import QuerySyntaxError
from graphdb.sparql.parser import Query, parse_query, parse_update
from graphdb.sparql.syntax import Load, Update
from tests.conformance.manifests import Case, iri_of, read_manifest, suite_root

MANIFESTS = ("sparql10/manifest.ttl", "sparql11/manifest-all.ttl", "sparql12/manifest.ttl")

# Kinds of cases that hold no SPARQL text of their own; the protocol's are for tests over HTTP.
WITHOUT_TEXT = {"ProtocolTest", "GraphStoreProtocolTest", "ServiceDescriptionTest"}

PYOXIGRAPH_DIFFERS = {
    "sparql10/expr-builtin/case-insensitive-booleans.rq": "it reads TRUE and FALSE only in lower case",
    "sparql10/syntax-sparql3/syn-bad-26.rq": "it does not prefer the longest token: <?a&&?b> is an IRI",
    "sparql12/grouping/select-variable-reuse.rq": "it lets no column use an aggregate before it by name",
    "sparql12/syntax-triple-terms-negative/tripleterm-subject-03.rq": "it reads triple terms as subjects",
    "sparql12/syntax-triple-terms-negative/tripleterm-subject-06.rq": "it reads literals as subjects",
    "sparql12/syntax/nested-aggregate-functions.rq": "it reads an aggregate within an aggregate",
}

# How many cases of each kind the suites have: fewer means that some have been lost on the way.
COUNTS = {
    "CSVResultFormatTest": 3,
    "NegativeSyntaxTest": 131,
    "NegativeSyntaxTest11": 48,
    "NegativeUpdateSyntaxTest": 2,
    "NegativeUpdateSyntaxTest11": 13,
    "PositiveSyntaxTest": 251,
    "PositiveSyntaxTest11": 66,
    "PositiveUpdateSyntaxTest": 18,
    "PositiveUpdateSyntaxTest11": 42,
    "QueryEvaluationTest": 655,
    "UpdateEvaluationTest": 97,
}


def suite_cases() -> list[Case]:
    root = suite_root()
    if root is None:
        return []
    sparql = root / "w3c-rdf-tests" / "sparql"
    cases = [case for manifest in MANIFESTS for case in read_manifest(sparql / manifest)]
    return [case for case in cases if not case.kinds & WITHOUT_TEXT]


def place_of(case: Case) -> str:
    """The text's place in the suite, which names the case."""
    assert case.action.text_file is not None
    return iri_of(case.action.text_file).partition("/sparql/")[2]


CASES = suite_cases()
needs_suites = pytest.mark.skipif(not CASES, reason="the conformance suites are absent; set GRAPHDB_SHARED")
each_case = pytest.mark.parametrize("case", CASES, ids=[f"{place_of(case)}-{case.name}" for case in CASES])


def text_of(case: Case) -> str:
    assert case.action.text_file is not None
    return case.action.text_file.read_bytes().decode()


def is_update(case: Case) -> bool:
    return any("Update" in kind for kind in case.kinds)


def ours(case: Case) -> Query | Update:
    assert case.action.text_file is not None
    parse: Callable[[str, str], Query | Update] = parse_update if is_update(case) else parse_query
    return parse(text_of(case), iri_of(case.action.text_file))


def pyoxigraph_reads(case: Case) -> bool:
    """Whether pyoxigraph parses the text; what goes wrong later does not count."""
    assert case.action.text_file is not None
    base = iri_of(case.action.text_file)
    try:
        if is_update(case):
            Store().update(text_of(case), base_iri=base)
        else:
            Store().query(text_of(case), base_iri=base)
    except SyntaxError:
        return False
    except (RuntimeError, ValueError, OSError):
        return True
    return True


@needs_suites
def test_no_case_is_lost() -> None:
    assert Counter(kind for case in CASES for kind in case.kinds) == COUNTS


@needs_suites
@each_case
def test_the_suite_decides(case: Case) -> None:
    if any(kind.startswith("Negative") for kind in case.kinds):
        with pytest.raises(QuerySyntaxError):
            ours(case)
    else:
        ours(case)


@needs_suites
@each_case
def test_pyoxigraph_agrees(case: Case) -> None:
    try:
        tree = ours(case)
    except QuerySyntaxError:
        we_read = False
    else:
        we_read = True
        if tree.service_hosts:
            pytest.skip("pyoxigraph would ask another host")
        if isinstance(tree, Update) and any(isinstance(operation, Load) for operation in tree.operations):
            pytest.skip("pyoxigraph would load a document")
    differs = place_of(case) in PYOXIGRAPH_DIFFERS
    assert (pyoxigraph_reads(case) != we_read) == differs


@needs_suites
def test_every_difference_names_a_case() -> None:
    assert set(PYOXIGRAPH_DIFFERS) <= {place_of(case) for case in CASES}
