"""`_mvt`: what a search finds, as a vector tile of three layers: `hits`, `aggs` and `meta`.

Source: Elasticsearch's reference, "Vector tile search".
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphdb.geometry.vector_tiles import MEDIA_TYPE, Feature, Layer, Scalar, Tile, tile_bytes
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import Storage
from serve.answers import unless_gone
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.parameters import Parameters
from serve.search.searching.search_names import names_found
from serve.search.searching.search_runner import Asked, SearchRunner

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = ["endpoints"]

_NUMBERS = {"size": 10_000, "grid_precision": 8, "extent": 4096, "buffer": 5}
_GRID_TYPES = ("grid", "point", "centroid")
_PARAMETERS = "exact_bounds extent grid_agg grid_precision grid_type size track_total_hits with_labels"
_IN_BODY = {*_PARAMETERS.split(), "aggs", "buffer", "fields", "query", "runtime_mappings", "sort"}
_METRICS = {
    "avg",
    "boxplot",
    "cardinality",
    "extended_stats",
    "max",
    "median_absolute_deviation",
    "min",
    "percentile_ranks",
    "percentiles",
    "stats",
    "string_stats",
    "sum",
    "value_count",
    "weighted_avg",
}
_ZOOM_MAX = 29
_BUCKETS_MAX = 65_535
_GRID, _BOUNDS, _OWN = "grid", "bounds", "_mvt_"
_CENTROID, _LABEL = f"{_OWN}centroid", f"{_OWN}label_position"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One request. body: of the search, without what is of the tile; sorts: it says an order itself."""

    tile: Tile
    field: str
    body: Mapping[str, Any]
    precision: int  # levels of cells below the tile, 0: no layer of them
    grid_type: str
    aggs: Mapping[str, Any]
    exact_bounds: bool
    labels: bool

    @property
    def sorts(self) -> bool:
        return bool(self.body.get("sort"))


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def tile(exchange: Exchange) -> Answer:
        runner = shared.visible_to(exchange)
        wanted = _wanted(exchange, await exchange.json() or {})
        found = names_found(runner.node, exchange.get("index"), Parameters({}))
        specs = [one.index.mapping.field(wanted.field) for one in found]
        has_shapes = any(spec is not None and spec.storage is Storage.CODES for spec in specs)
        asked = Asked(_search(wanted, has_shapes), reads_hits=True, principal=exchange.principal)
        answer = await unless_gone(exchange.request, runner.search(found, asked))
        made = await asyncio.to_thread(lambda: tile_bytes(_layers(wanted, answer, has_shapes)))
        return Answer(made, headers={"content-type": MEDIA_TYPE})

    path = "/{index}/_mvt/{field}/{zoom}/{x}/{y}"
    return endpoint("GET POST", path, tile, _PARAMETERS, Body.JSON)


# The request.


def _wanted(exchange: Exchange, body: Mapping[str, Any]) -> _Wanted:
    """Parameters come before the members of the body. Errors: SearchError."""
    for name in body:
        if name not in _IN_BODY:
            raise SearchError("x_content_parse_exception", f"[vector-tile] unknown field [{name[:100]}]")
    given = dict(body)
    given |= {
        name: text for name in _PARAMETERS.split() if (text := exchange.parameters.text(name)) is not None
    }
    numbers = {name: _number(name, given.pop(name, default)) for name, default in _NUMBERS.items()}
    if numbers["grid_precision"] > 8:
        raise illegal_argument(
            f"[gridPrecision] parameter cannot be bigger than 8, found [{numbers['grid_precision']}]"
        )
    grid_type = str(given.pop("grid_type", "grid")).lower()
    if grid_type not in _GRID_TYPES:
        raise illegal_argument(f"Invalid grid type [{grid_type[:100]}]")
    grid_agg = str(given.pop("grid_agg", "geotile")).lower()
    if grid_agg != "geotile":
        raise illegal_argument(f"Invalid agg type [{grid_agg[:100]}]: cells are those of [geotile]")
    flags = {name: _flag(name, given.pop(name, False)) for name in ("exact_bounds", "with_labels")}
    place = [_number(name, exchange[name]) for name in ("zoom", "x", "y")]
    zoom, x, y = place
    if zoom > _ZOOM_MAX or not (x < 1 << zoom and y < 1 << zoom):
        raise illegal_argument(
            f"[{zoom}/{x}/{y}] is no tile: zoom is from 0 to {_ZOOM_MAX}, x and y are from 0 to 2^zoom - 1"
        )
    tile = Tile(zoom, x, y, max(1, numbers["extent"]), numbers["buffer"])
    precision = min(numbers["grid_precision"], _ZOOM_MAX - zoom)
    aggs = _checked_aggs(given.pop("aggs", {}))
    shown = {**given, "size": numbers["size"]}
    return _Wanted(
        tile,
        exchange["field"],
        shown,
        precision,
        grid_type,
        aggs,
        flags["exact_bounds"],
        flags["with_labels"],
    )


def _number(name: str, value: Any) -> int:
    try:
        number = int(str(value)[:20])
    except ValueError:
        raise illegal_argument(
            f"Failed to parse int parameter [{name}] with value [{str(value)[:100]}]"
        ) from None
    if number < 0:
        shown = "gridPrecision" if name == "grid_precision" else name
        raise illegal_argument(f"[{shown}] parameter cannot be negative, found [{number}]")
    return min(number, 2**31 - 1)


def _flag(name: str, value: Any) -> bool:
    if value in (True, "true", ""):
        return True
    if value in (False, "false"):
        return False
    raise illegal_argument(
        f"Failed to parse value [{str(value)[:100]}] of [{name}]: it is [true] or [false]."
    )


def _checked_aggs(aggs: Any) -> Mapping[str, Any]:
    if not isinstance(aggs, Mapping):
        raise illegal_argument("[aggs] must be an object")
    for name, definition in aggs.items():
        kinds = [kind for kind in definition if kind != "meta"] if isinstance(definition, Mapping) else []
        if name.startswith(_OWN):
            raise illegal_argument(
                f"Invalid aggregation name [{name[:100]}]. Aggregation names cannot start with prefix "
                f"'{_OWN}'"
            )
        if len(kinds) != 1 or kinds[0] not in _METRICS:
            raise illegal_argument(
                f"Unsupported aggregation of type [{', '.join(kinds)[:100]}]."
                "Only metric aggregations are supported."
            )
    return aggs


def _search(wanted: _Wanted, has_shapes: bool) -> dict[str, Any]:
    """The body of the search that the tile shows."""
    west, south, east, north = wanted.tile.degrees
    box = {"geo_bounding_box": {wanted.field: {"top": north, "left": west, "bottom": south, "right": east}}}
    own = wanted.body.get("query")
    body = {
        **wanted.body,
        "query": box if own is None else {"bool": {"filter": [own, box]}},
        "fields": [*wanted.body.get("fields", ()), wanted.field],
        "_source": False,
    }
    aggs: dict[str, Any] = {}
    if wanted.precision and not has_shapes:
        below = dict(wanted.aggs)
        if wanted.grid_type == "centroid":
            below[_CENTROID] = {"geo_centroid": {"field": wanted.field}}
        precision = wanted.tile.zoom + wanted.precision
        grid = {"field": wanted.field, "precision": precision, "size": _BUCKETS_MAX}
        aggs[_GRID] = {"geotile_grid": grid, "aggs": below}
    if wanted.exact_bounds and not has_shapes:
        aggs[_BOUNDS] = {"geo_bounds": {"field": wanted.field, "wrap_longitude": False}}
    return {**body, "aggs": aggs} if aggs else body


# The tile.


def _layers(wanted: _Wanted, answer: Mapping[str, Any], has_shapes: bool) -> Iterator[Layer]:
    extent = wanted.tile.extent
    hits = [(hit, _shapes(hit, wanted.field)) for hit in answer["hits"]["hits"]]
    if has_shapes and not wanted.sorts:
        hits.sort(key=lambda pair: -sum(map(_size, pair[1])))  # what is large is drawn first
    yield Layer("hits", extent, [feature for hit, shapes in hits for feature in _of_hit(wanted, hit, shapes)])
    found = answer.get("aggregations", {})
    buckets = list(_in_tile(wanted, found.get(_GRID, {}).get("buckets", ())))
    yield Layer("aggs", extent, [feature for one in buckets for feature in _of_cell(wanted, *one)])
    bounds = found.get(_BOUNDS, {}).get("bounds")
    commands = wanted.tile.cell(0, 0, 1, 1)
    if bounds is not None:
        commands = _box(wanted.tile, bounds)
    elif wanted.exact_bounds and (shapes := [shape for _, several in hits for shape in several]):
        commands = _box_of(wanted.tile, shapes)
    meta = {name: member for name, member in answer.items() if name not in ("hits", "aggregations")}
    meta["hits"] = {name: member for name, member in answer["hits"].items() if name != "hits"}
    if _GRID in found:
        meta["aggregations"] = _bucket_stats([bucket for bucket, *_ in buckets])
    yield Layer("meta", extent, [Feature(3, commands, dict(_flat(meta)))])


def _shapes(hit: Mapping[str, Any], field: str) -> "list[BaseGeometry]":
    from shapely.geometry import shape

    return [
        shape(dict(value)) for value in hit.get("fields", {}).get(field, ()) if isinstance(value, Mapping)
    ]


def _size(shape: "BaseGeometry") -> float:
    west, south, east, north = shape.bounds
    return float((east - west) ** 2 + (north - south) ** 2)


def _of_hit(wanted: _Wanted, hit: Mapping[str, Any], shapes: "Sequence[BaseGeometry]") -> Iterator[Feature]:
    properties: dict[str, Scalar] = {"_id": hit["_id"], "_index": hit["_index"]}
    for name, values in hit.get("fields", {}).items():
        if name != wanted.field and values and isinstance(values[0], Scalar):
            properties[name] = values[0]
    yield from wanted.tile.features(shapes, properties)
    if wanted.labels and shapes:
        yield from wanted.tile.features([_label_of(shapes[0])], {**properties, _LABEL: True})


def _label_of(shape: "BaseGeometry") -> "BaseGeometry":
    """The middle of a shape, or some point of it where that is outside."""
    middle = shape.centroid
    return middle if shape.covers(middle) else shape.representative_point()


def _in_tile(
    wanted: _Wanted, buckets: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], int, int]]:
    """With the place of their cell in the tile. Points on its sides are in the box, but in other cells."""
    count, tile = 1 << wanted.precision, wanted.tile
    for bucket in buckets:
        _, x, y = map(int, bucket["key"].split("/"))
        across, down = x - tile.x * count, y - tile.y * count
        if 0 <= across < count and 0 <= down < count:
            yield bucket, across, down


def _of_cell(wanted: _Wanted, bucket: Mapping[str, Any], across: int, down: int) -> Iterator[Feature]:
    count, tile = 1 << wanted.precision, wanted.tile
    own = {
        name: member
        for name, member in bucket.items()
        if name not in ("key", "doc_count") and not name.startswith(_OWN)
    }
    properties: dict[str, Scalar] = {"_key": bucket["key"], "_count": bucket["doc_count"], **dict(_flat(own))}
    middle = Feature(1, _point(tile, (across + 0.5) / count, (down + 0.5) / count), properties)
    if wanted.grid_type == "point":
        yield middle
    elif wanted.grid_type == "centroid":
        from shapely import Point

        place = bucket[_CENTROID]["location"]
        yield from tile.features([Point(place["lon"], place["lat"])], properties)
    else:
        sides = (across / count, down / count, (across + 1) / count, (down + 1) / count)
        yield Feature(3, tile.cell(*sides), properties)
    if wanted.labels:
        yield Feature(1, middle.commands, {**properties, _LABEL: True})


def _point(tile: Tile, across: float, down: float) -> list[int]:
    return [9, 2 * int(across * tile.extent + 0.5), 2 * int(down * tile.extent + 0.5)]


def _box(tile: Tile, bounds: Mapping[str, Any]) -> list[int]:
    from shapely import MultiPoint

    corners = [(bounds[corner]["lon"], bounds[corner]["lat"]) for corner in ("top_left", "bottom_right")]
    return _box_of(tile, [MultiPoint(corners)])


def _box_of(tile: Tile, shapes: "Sequence[BaseGeometry]") -> list[int]:
    """Around shapes; it may reach out of the tile."""
    import shapely

    west, south, east, north = shapely.total_bounds(shapes)
    projected = shapely.transform(shapely.MultiPoint([(west, north), (east, south)]), tile.projected)
    left, top, right, bottom = shapely.bounds(projected) / tile.extent
    return tile.cell(left, top, right, bottom)


def _bucket_stats(buckets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of the counts of the cells, and of what each aggregation has found in them."""
    values: dict[str, list[float]] = {"_count": [float(bucket["doc_count"]) for bucket in buckets]}
    for bucket in buckets:
        for name, member in bucket.items():
            if isinstance(member, Mapping) and not name.startswith(_OWN):
                for metric, value in _metrics(name, member):
                    values.setdefault(metric, []).append(value)
    return {name: _stats(found) for name, found in values.items()}


def _metrics(name: str, found: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """By the names that pipeline aggregations know them by."""
    for metric, value in found.items():
        if isinstance(value, Mapping):
            yield from _metrics(name, value) if metric == "values" else ()
        elif isinstance(value, int | float):
            yield (name if metric == "value" else f"{name}.{metric}"), float(value)


def _stats(values: Sequence[float]) -> dict[str, Any]:
    if not values:
        return {"count": 0, "sum": 0.0}
    total = sum(values)
    return {
        "count": len(values),
        "min": min(values),
        "max": max(values),
        "avg": total / len(values),
        "sum": total,
    }


def _flat(members: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Scalar]]:
    """The scalars in an object, by their paths."""
    for name, member in members.items():
        if isinstance(member, Mapping):
            yield from _flat(member, f"{path}{name}.")
        elif isinstance(member, Scalar):
            yield f"{path}{name}", member
