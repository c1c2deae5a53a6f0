"""From the JSON under `aggs` to a tree of aggregations."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphdb.search.aggregations.adaptive_histograms import (
    parse_auto_date_histogram,
    parse_variable_histogram,
)
from graphdb.search.aggregations.aggregation import Aggregation, Common, Definition, Pipeline
from graphdb.search.aggregations.approximate import (
    parse_cardinality,
    parse_median_deviation,
    parse_percentiles,
)
from graphdb.search.aggregations.bucket_scripts import BUCKET_SCRIPTS
from graphdb.search.aggregations.composite import parse_composite, parse_multi_terms
from graphdb.search.aggregations.cumulative_cardinality import (
    CumulativeCardinality,
    parse_cumulative_cardinality,
)
from graphdb.search.aggregations.derivative import parse_derivative
from graphdb.search.aggregations.distributions import (
    parse_boxplot,
    parse_matrix_stats,
    parse_string_stats,
    parse_t_test,
    parse_top_metrics,
)
from graphdb.search.aggregations.filter_aggregations import (
    parse_adjacency_matrix,
    parse_filter,
    parse_filters,
    parse_global,
    parse_missing,
    parse_nested,
    parse_reverse_nested,
)
from graphdb.search.aggregations.geo_grids import parse_geo_grid
from graphdb.search.aggregations.histogram import (
    histogram_form,
    parse_date_histogram,
    parse_histogram,
)
from graphdb.search.aggregations.metrics import (
    parse_geo_bounds,
    parse_geo_centroid,
    parse_metric,
    parse_top_hits,
    parse_weighted_avg,
)
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.pipelines import OF_BUCKETS, OF_NEIGHBOURS, PIPELINES, formatted
from graphdb.search.aggregations.range_aggregations import (
    parse_date_range,
    parse_geo_distance,
    parse_ip_prefix,
    parse_ip_range,
    parse_range,
)
from graphdb.search.aggregations.rates import parse_rate
from graphdb.search.aggregations.relations import parse_related
from graphdb.search.aggregations.sampling import parse_random_sampler, parse_sampler
from graphdb.search.aggregations.scripted import parse_scripted_metric
from graphdb.search.aggregations.significant_terms import parse_significant_terms
from graphdb.search.aggregations.terms_aggregation import parse_rare_terms, parse_terms
from graphdb.search.errors import SearchError, illegal_argument, illegal_request, parsing
from graphdb.search.near_names import did_you_mean
from graphdb.search.query import QueryContext
from graphdb.search.query.forms import Form, NoForm, Values

__all__ = ["DEPTH_MAX", "FORMS", "KINDS", "form_of", "parse"]

DEPTH_MAX = 20
COUNT_MAX = 1_000  # of the aggregations of one level
_NAME = re.compile(r"[^\[\]>]{1,1000}")

KINDS: dict[str, Callable[[Definition], Aggregation]] = {
    "adjacency_matrix": parse_adjacency_matrix,
    "auto_date_histogram": parse_auto_date_histogram,
    "avg": parse_metric,
    "boxplot": parse_boxplot,
    "cardinality": parse_cardinality,
    "children": parse_related,
    "composite": parse_composite,
    "date_histogram": parse_date_histogram,
    "date_range": parse_date_range,
    "diversified_sampler": parse_sampler,
    "extended_stats": parse_metric,
    "filter": parse_filter,
    "filters": parse_filters,
    "geo_bounds": parse_geo_bounds,
    "geo_centroid": parse_geo_centroid,
    "geo_distance": parse_geo_distance,
    "geohash_grid": parse_geo_grid,
    "geotile_grid": parse_geo_grid,
    "global": parse_global,
    "histogram": parse_histogram,
    "ip_prefix": parse_ip_prefix,
    "ip_range": parse_ip_range,
    "matrix_stats": parse_matrix_stats,
    "max": parse_metric,
    "median_absolute_deviation": parse_median_deviation,
    "min": parse_metric,
    "missing": parse_missing,
    "multi_terms": parse_multi_terms,
    "nested": parse_nested,
    "parent": parse_related,
    "percentile_ranks": parse_percentiles,
    "percentiles": parse_percentiles,
    "random_sampler": parse_random_sampler,
    "range": parse_range,
    "rare_terms": parse_rare_terms,
    "rate": parse_rate,
    "reverse_nested": parse_reverse_nested,
    "sampler": parse_sampler,
    "scripted_metric": parse_scripted_metric,
    "significant_terms": parse_significant_terms,
    "significant_text": parse_significant_terms,
    "stats": parse_metric,
    "string_stats": parse_string_stats,
    "sum": parse_metric,
    "t_test": parse_t_test,
    "terms": parse_terms,
    "top_hits": parse_top_hits,
    "top_metrics": parse_top_metrics,
    "value_count": parse_metric,
    "variable_width_histogram": parse_variable_histogram,
    "weighted_avg": parse_weighted_avg,
}


_PIPELINES: dict[str, Callable[..., Pipeline]] = {
    **PIPELINES,
    **BUCKET_SCRIPTS,
    "cumulative_cardinality": parse_cumulative_cardinality,
    "derivative": parse_derivative,
}


def parse(body: Any, context: QueryContext) -> Common:
    """The aggregations of a request, as the children of a root without a name. Errors: SearchError."""
    return _level(Common(""), body, context, ())


FORMS: dict[str, Callable[[Definition, Form], Callable[[Values], Aggregation]]] = {
    "histogram": histogram_form,
}
"""Of those that leave some text or number open, see `graphdb.search.query.forms`."""


def form_of(name: str, body: Any, context: QueryContext, form: Form) -> Callable[[Values], Common]:
    """As parse, of a single aggregation without others below it. body: its definition, with slots.

    Raises NoForm where it leaves nothing open, SearchError.
    """
    if not isinstance(body, dict) or len(body) != 1:
        raise NoForm
    ((kind, inner),) = body.items()
    if kind not in FORMS:
        raise NoForm
    make = FORMS[kind](Definition(kind, Common(name), Options(kind, inner), context), form)
    return lambda values: Common("", children=(make(values),))


def _level(parent: Common, body: Any, context: QueryContext, above: tuple["_Parent", ...]) -> Common:
    if not isinstance(body, Mapping):
        raise parsing(f"Expected [START_OBJECT] under [aggs], but got a value in [{parent.name or 'aggs'}]")
    if len(above) > DEPTH_MAX or len(body) > COUNT_MAX:
        raise illegal_request(f"aggregations are deeper than {DEPTH_MAX} or more than {COUNT_MAX}")
    children: list[Aggregation] = []
    pipelines: list[Pipeline] = []
    for name, definition in body.items():
        if not _NAME.fullmatch(name):
            raise parsing(
                f"Invalid aggregation name [{name[:100]}]. Aggregation names can contain any character "
                "except '[', ']', and '>'"
            )
        made = _one(name, definition, context, above)
        if isinstance(made, Pipeline):
            pipelines.append(made)
        else:
            children.append(made)
    beside = tuple(children)
    for pipeline in pipelines:
        if isinstance(pipeline, CumulativeCardinality):
            beside = pipeline.counting(beside)
    return replace(parent, children=beside, pipelines=tuple(pipelines))


@dataclass(frozen=True, slots=True)
class _Parent:
    """An aggregation that others stand in: what it is called, and what it says."""

    kind: str
    body: Any


def _one(
    name: str, definition: Any, context: QueryContext, above: tuple[_Parent, ...]
) -> Aggregation | Pipeline:
    if not isinstance(definition, Mapping):
        raise parsing(f"Aggregation definition for [{name}] starts with a value, expected a [START_OBJECT].")
    parts = dict(definition)
    meta = _meta(name, parts)
    below = [parts.pop(key) for key in ("aggs", "aggregations") if key in parts]
    if len(below) > 1:
        raise parsing(f"Found two sub aggregation definitions under [{name}]")
    if len(parts) != 1:
        kinds = "] and [".join(list(parts)[:2])
        reason = f"Found two aggregation type definitions in [{name}]: [{kinds}]" if parts else None
        raise parsing(reason or f"Missing definition for aggregation [{name}]")
    ((kind, body),) = parts.items()
    if kind in _PIPELINES:
        options = Options(kind, body)
        # a script's is its own
        pattern = None if kind in ("bucket_script", "moving_fn") else options.text("format")
        pipeline = _PIPELINES[kind](name, meta, options)
        _check_pipeline(kind, name, above)
        return formatted(pipeline, pattern)
    if kind not in KINDS:
        hint = did_you_mean(kind, [*KINDS, *_PIPELINES])
        raise parsing(f"Unknown aggregation type [{kind[:100]}]{hint}")
    common = Common(name, meta)
    if below:
        common = _level(common, below[0], _inside(kind, body, context), (*above, _Parent(kind, body)))
    _check_place(kind, name, above)
    made = KINDS[kind](Definition(kind, common, Options(kind, body), context))
    if below and made.leaf_only:
        raise illegal_request(f"Aggregator [{name}] of type [{kind}] cannot accept sub-aggregations")
    if kind in _SAMPLERS and not below:
        raise illegal_argument(
            f"[random_sampler] aggregation [{name}] must have sub-aggregations"
            if kind == "random_sampler"
            else "Sampler aggregation must be used with child aggregations."
        )
    return made


_SAMPLERS = ("diversified_sampler", "random_sampler", "sampler")


def _check_place(kind: str, name: str, above: tuple[_Parent, ...]) -> None:
    """Some aggregations cannot stand in every other."""
    if kind == "random_sampler" and above:
        raise illegal_argument(
            f"[random_sampler] aggregation [{name}] must be defined at the top level of the aggregations"
        )
    if kind == "global" and above:
        raise SearchError(
            "aggregation_execution_exception",
            f"Aggregation cannot have a global sub-aggregation [{name}]. Global aggregations can only be "
            "defined as top level aggregations",
        )
    if kind == "rate" and not any(map(_has_intervals, above)):
        raise illegal_argument(
            f"The rate aggregation [{name}] can only be used inside a date histogram aggregation or "
            "composite aggregation with exactly one date histogram value source"
        )
    if kind == "composite":
        for parent in reversed(above):
            if parent.kind not in ("nested", "reverse_nested", "filter"):
                factory = "".join(word.capitalize() for word in parent.kind.split("_"))
                raise illegal_request(
                    "[composite] aggregation cannot be used with a parent aggregation of type: "
                    f"[{factory}AggregatorFactory]"
                )


def _has_intervals(parent: _Parent) -> bool:
    """Whether each of its buckets is in one interval of time."""
    if parent.kind != "composite" or not isinstance(parent.body, Mapping):
        return parent.kind == "date_histogram"
    sources = parent.body.get("sources")
    dated = [
        source["date_histogram"]
        for entry in (sources if isinstance(sources, list) else ())
        for source in (entry.values() if isinstance(entry, Mapping) else ())
        if isinstance(source, Mapping) and isinstance(source.get("date_histogram"), Mapping)
    ]
    return len(dated) == 1 and not dated[0].get("missing_bucket")


_SEQUENTIAL = ("histogram", "date_histogram", "auto_date_histogram")


def _check_pipeline(kind: str, name: str, above: tuple[_Parent, ...]) -> None:
    """What works among buckets needs an aggregation around it that has some; what compares neighbours needs
    one whose buckets are all there. Errors: action_request_validation_exception.
    """
    if kind in OF_BUCKETS and not above:
        raise _invalid(f"{kind} aggregation [{name}] must be declared inside of another aggregation")
    if kind not in OF_NEIGHBOURS:
        return
    parent = above[-1] if above else _Parent("", None)
    if parent.kind not in _SEQUENTIAL:
        kinds = "a histogram, date_histogram or auto_date_histogram"
        raise _invalid(f"{kind} aggregation [{name}] must have {kinds} as parent")
    least = parent.body.get("min_doc_count") if isinstance(parent.body, Mapping) else None
    if least not in (None, 0, "0"):
        raise _invalid(f"parent histogram of {kind} aggregation [{name}] must have min_doc_count of 0")


def _invalid(problem: str) -> SearchError:
    return SearchError("action_request_validation_exception", f"Validation Failed: 1: {problem};")


def _meta(name: str, parts: dict[str, Any]) -> Mapping[str, Any] | None:
    if "meta" not in parts:
        return None
    meta = parts.pop("meta")
    if not isinstance(meta, Mapping):
        found = "VALUE_NULL" if meta is None else "a value"
        raise parsing(f"Expected [START_OBJECT] under [meta], but got a [{found}] in [{name}]")
    return meta


def _inside(kind: str, body: Any, context: QueryContext) -> QueryContext:
    """nested and reverse_nested change which objects the aggregations below them see."""
    if kind in ("nested", "reverse_nested") and isinstance(body, Mapping):
        path = body.get("path")
        return replace(context, nested_path=path if isinstance(path, str) else None)
    return context
