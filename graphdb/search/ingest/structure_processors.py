"""Processors of structures: JSON and URIs taken apart, fingerprints of fields.

Source: Elasticsearch's documentation of ingest processors.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import mmh3
import orjson

from graphdb.search.errors import illegal_argument
from graphdb.search.ingest.document import IngestDocument, cast_text
from graphdb.search.ingest.options import ProcessorOptions
from graphdb.search.ingest.reading import Reading, Step

__all__ = ["STRUCTURE_PROCESSORS"]


def _json(options: ProcessorOptions, reading: Reading) -> Step:
    field, target = options.text("field"), options.text("target_field", None)
    to_root = options.flag("add_to_root", False)
    merges = options.one_of("add_to_root_conflict_strategy", "replace", "replace", "merge") == "merge"
    repeats, is_strict = (
        options.flag("allow_duplicate_keys", False),
        options.flag("strict_json_parsing", True),
    )
    if to_root and target is not None:
        raise options.error(
            "target_field", "cannot set a target field while also setting `add_to_root` to true"
        )

    def step(document: IngestDocument) -> None:
        value = document.get(field)
        found = value
        if isinstance(value, str):
            found = _parsed(value, field) if is_strict else _first_value(value, field)
            if not repeats:
                _check_names(value, found)
        if not to_root:
            document.set(target or field, found)
        elif not isinstance(found, dict):
            raise illegal_argument("cannot add non-map fields to root of document")
        elif merges:
            _merge(document.source, found)
        else:
            document.source.update(found)

    return step


def _parsed(text: str, field: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise illegal_argument(f"the value of field [{field}] is no JSON: {error.msg}") from None


def _first_value(text: str, field: str) -> Any:
    """The value that a text begins with, whatever follows."""
    try:
        _, end = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        end = len(text)  # its error says why
    return _parsed(text.lstrip()[:end], field)


def _check_names(text: str, found: Any) -> None:
    """Errors: illegal_argument_exception for an object in the text that has a name twice."""

    def checked(members: list[tuple[str, Any]]) -> None:
        seen = set()
        for name, _ in members:
            if name in seen:
                raise illegal_argument(f"Duplicate field '{name[:200]}'")
            seen.add(name)

    # Each member has a colon: where one is lost, a name came twice.
    if text.count(":") != orjson.dumps(found).count(b":"):
        json.JSONDecoder(object_pairs_hook=checked).raw_decode(text.lstrip())


def _merge(into: dict[str, Any], given: dict[str, Any]) -> None:
    for name, value in given.items():
        there = into.get(name)
        if isinstance(there, dict) and isinstance(value, dict):
            _merge(there, value)
        else:
            into[name] = value


def _uri_parts(options: ProcessorOptions, reading: Reading) -> Step:
    field, target = options.text("field"), options.text("target_field", "url")
    keeps, removes = options.flag("keep_original", True), options.flag("remove_if_successful", False)
    ignores = options.flag("ignore_missing", False)

    def step(document: IngestDocument) -> None:
        if ignores and document.find(field) is None:
            return
        text = cast_text(document.get(field), field)
        try:
            found = urlsplit(text)
            port = found.port
        except ValueError:
            raise illegal_argument(f"unable to parse URI [{text[:200]}]") from None
        last = found.path.rpartition("/")[2]
        user = found.netloc.rpartition("@")[0] or None
        parts: dict[str, Any] = {
            "domain": found.hostname,
            "path": found.path,
            "scheme": found.scheme or None,
            "fragment": found.fragment or None,
            "query": found.query or None,
            "port": port,
            "extension": last.rpartition(".")[2] if "." in last else None,
            "user_info": user,
            "username": None if user is None else user.partition(":")[0],
            "password": user.partition(":")[2] if user is not None and ":" in user else None,
            "original": text if keeps else None,
        }
        if removes and field != target:
            document.remove(field)
        document.set(target, {name: value for name, value in parts.items() if value is not None})

    return step


_METHODS: dict[str, Callable[[bytes], bytes]] = {
    "MD5": lambda made: hashlib.md5(made, usedforsecurity=False).digest(),
    "SHA-1": lambda made: hashlib.sha1(made, usedforsecurity=False).digest(),
    "SHA-256": lambda made: hashlib.sha256(made).digest(),
    "SHA-512": lambda made: hashlib.sha512(made).digest(),
    "MurmurHash3": mmh3.hash_bytes,
}


def _fingerprint(options: ProcessorOptions, reading: Reading) -> Step:
    """The bytes that are hashed are ours: fingerprints of Elasticsearch are others."""
    fields, target = sorted(options.texts("fields")), options.text("target_field", "fingerprint")
    salt, ignores = options.text("salt", ""), options.flag("ignore_missing", False)
    method = options.one_of("method", "SHA-1", *_METHODS)

    def step(document: IngestDocument) -> None:
        made, found = bytearray(salt.encode()), False
        for field in fields:
            if not document.has(field):
                if not ignores:
                    document.get(field)
                continue
            found = True
            made += orjson.dumps([field, document.get(field)], option=orjson.OPT_SORT_KEYS)
        if found:
            document.set(target, b64encode(_METHODS[method](bytes(made))).decode())

    return step


STRUCTURE_PROCESSORS: dict[str, Callable[[ProcessorOptions, Any], Step]] = {
    "fingerprint": _fingerprint,
    "json": _json,
    "uri_parts": _uri_parts,
}
