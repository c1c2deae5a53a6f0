"""Reads a vector tile byte by byte, to look at what has been written."""

import struct
from collections.abc import Iterator
from typing import Any

__all__ = ["read_tile"]


def read_tile(tile: bytes) -> dict[str, Any]:
    """By name of a layer `{"extent", "version", "features": [(kind, rings, properties)]}`; a ring is a list
    of (x, y), and ends with its first place where it is closed.
    """
    layers = [_layer(value) for number, value in _members(tile) if number == 3]
    return {layer.pop("name"): layer for layer in layers}


def _layer(raw: bytes) -> dict[str, Any]:
    layer: dict[str, Any] = {}
    features, keys, values = [], [], []
    for number, value in _members(raw):
        if number in (1, 5, 15):
            name = {1: "name", 5: "extent", 15: "version"}[number]
            layer[name] = value.decode() if name == "name" else value
        elif number == 2:
            features.append(dict(_members(value)))
        elif number == 3:
            keys.append(value.decode())
        elif number == 4:
            values.append(_scalar(value))
    layer["features"] = [_feature(members, keys, values) for members in features]
    return layer


def _feature(members: dict[int, Any], keys: list[str], values: list[Any]) -> tuple[int, Any, dict[str, Any]]:
    tags = list(_numbers(members.get(2, b"")))
    pairs = zip(tags[::2], tags[1::2], strict=True)
    return members[3], _rings(list(_numbers(members[4]))), {keys[key]: values[value] for key, value in pairs}


def _rings(commands: list[int]) -> list[list[tuple[int, int]]]:
    rings: list[list[tuple[int, int]]] = []
    at, x, y = 0, 0, 0
    while at < len(commands):
        command, count = commands[at] & 7, commands[at] >> 3
        at += 1
        if command == 7:
            rings[-1].append(rings[-1][0])
            continue
        for _ in range(count):
            x, y = x + _signed(commands[at]), y + _signed(commands[at + 1])
            at += 2
            if command == 1:
                rings.append([])
            rings[-1].append((x, y))
    return rings


def _signed(number: int) -> int:
    return number >> 1 if number % 2 == 0 else -(number >> 1) - 1


def _scalar(raw: bytes) -> Any:
    ((number, value),) = _members(raw)
    if number == 1:
        return value.decode()
    if number == 3:
        return struct.unpack("<d", value)[0]
    assert number in (4, 7)
    return bool(value) if number == 7 else value - (1 << 64 if value >> 63 else 0)


def _members(raw: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        if key & 7 == 0:
            value, at = _varint(raw, at)
            yield key >> 3, value
            continue
        length, at = (8, at) if key & 7 == 1 else _varint(raw, at)
        assert key & 7 in (1, 2)
        assert at + length <= len(raw)
        yield key >> 3, raw[at : at + length]
        at += length


def _numbers(raw: bytes) -> Iterator[int]:
    at = 0
    while at < len(raw):
        number, at = _varint(raw, at)
        yield number


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (raw[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if raw[at - 1] < 128:
            return number, at
