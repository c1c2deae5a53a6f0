"""Circular arcs as runs of short edges, because GEOS has only straight edges."""

import math
from typing import Final

import numpy as np

from graphdb.geometry.shapes import Positions, check_vertices

__all__ = ["arc_string", "circle"]

_QUARTER_SEGMENTS: Final = 32


def arc_string(vertices: Positions) -> Positions:
    """The vertices of consecutive arcs. Each arc has three of the given vertices: begin, middle and end.

    The end of an arc is the begin of the next. vertices is (n, 2) with n odd and at least 3. Further columns
    are interpolated evenly along each arc.
    Raises LimitExceeded.
    """
    check_vertices(len(vertices) // 2 * 2 * _QUARTER_SEGMENTS)
    arcs = [_arc(*vertices[at : at + 3]) for at in range(0, len(vertices) - 2, 2)]
    return np.concatenate([arc[:-1] for arc in arcs] + [vertices[-1:]])


def circle(vertices: Positions) -> Positions:
    """The circle through three points, closed; it begins at the first. vertices is (3, 2).

    Raises ValueError for three on a line.
    """
    centre = _centre(*vertices)
    if centre is None:
        raise ValueError("three points on a line are on no circle")
    around = _turned(vertices[0] - centre, 2 * math.pi) + centre
    around[-1] = around[0]
    return around


def _arc(begin: Positions, middle: Positions, end: Positions) -> Positions:
    """The vertices from begin to end; straight through the middle if the three are on a line.

    If begin and end are the same position, a full circle, and the middle is its opposite point.
    """
    if np.array_equal(begin[:2], end[:2]):
        centre: Positions | None = (begin[:2] + middle[:2]) / 2
        turn = 2 * math.pi
    else:
        centre = _centre(begin[:2], middle[:2], end[:2])
        turn = 0.0 if centre is None else _turn(begin[:2] - centre, middle[:2] - centre, end[:2] - centre)
    if centre is None:
        return np.stack((begin, middle, end))
    around = _turned(begin[:2] - centre, turn) + centre
    rest = np.linspace(begin[2:], end[2:], len(around))
    arc = np.hstack((around, rest))
    arc[0], arc[-1] = begin, end
    return arc


def _centre(one: Positions, two: Positions, three: Positions) -> Positions | None:
    """The centre of the circle through three points; None if they are on a line."""
    (ax, ay), (bx, by) = two - one, three - one
    twice_area = 2 * (ax * by - ay * bx)
    a, b = ax * ax + ay * ay, bx * bx + by * by
    if abs(twice_area) < 1e-12 * max(a, b):
        return None
    centre: Positions = one + np.array([by * a - ay * b, ax * b - bx * a]) / twice_area
    return centre


def _turn(begin: Positions, middle: Positions, end: Positions) -> float:
    """The angle from begin to end through the middle, negative if clockwise."""
    to_middle, to_end = _angle(begin, middle), _angle(begin, end)
    return to_end if to_middle <= to_end else to_end - 2 * math.pi


def _angle(begin: Positions, end: Positions) -> float:
    """Counterclockwise, from 0 to a whole turn."""
    cross, dot = begin[0] * end[1] - begin[1] * end[0], float(begin @ end)
    return math.atan2(cross, dot) % (2 * math.pi)


def _turned(arm: Positions, turn: float) -> Positions:
    """(n, 2): positions of the end of an arm while it turns by an angle."""
    count = max(2, math.ceil(abs(turn) / (math.pi / 2) * _QUARTER_SEGMENTS) + 1)
    angles = np.linspace(0, turn, count)
    x, y = arm
    return np.column_stack((x * np.cos(angles) - y * np.sin(angles), x * np.sin(angles) + y * np.cos(angles)))
