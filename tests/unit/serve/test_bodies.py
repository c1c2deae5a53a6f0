"""Request bodies: the same bytes come out however they went in, and no limit is passed on the way."""

import asyncio
import gzip
import tracemalloc
from collections.abc import Callable

import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from graphdb.errors import BodyTooLarge, GraphDBError, InvalidParameter, UnsupportedMediaType
from serve.bodies import body_chunks, content_type, read_body, read_text

Compress = Callable[[bytes], bytes]
COMPRESS: dict[str, Compress] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "zstd": zstd.compress,
}


def request(pieces: list[bytes], headers: dict[str, str], *, goes_away: bool = False) -> Request:
    """A request whose body arrives in these pieces; goes_away ends it before its end."""
    messages: list[Message] = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages.append({"type": "http.disconnect"} if goes_away else {"type": "http.request", "body": b""})

    async def receive() -> Message:
        return messages.pop(0)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "headers": raw}, receive)


def read(pieces: list[bytes], limit: int = 10_000_000, **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return asyncio.run(read_body(request(pieces, named), limit))


@pytest.mark.parametrize("encoding", COMPRESS)
@given(data=st.binary(max_size=3000), repeats=st.integers(1, 100), cut=st.integers(1, 997))
@settings(max_examples=15, deadline=None)
def test_any_cut_gives_the_same_bytes(encoding: str, data: bytes, repeats: int, cut: int) -> None:
    document = b"." + data * repeats  # what does not begin with a byte order mark
    sent = COMPRESS[encoding](document)
    pieces = [sent[start : start + cut] for start in range(0, len(sent), cut)]
    assert read(pieces, content_encoding=encoding) == document


@pytest.mark.parametrize("encoding", COMPRESS)
@pytest.mark.parametrize("cut", [1, 2, 1000])
def test_a_byte_order_mark_is_passed_over(encoding: str, cut: int) -> None:
    for document in (b"", b"{}", b"{\xef\xbb\xbf}", b"\xef\xbb"):
        sent = COMPRESS[encoding](b"\xef\xbb\xbf" + document)
        pieces = [sent[start : start + cut] for start in range(0, len(sent), cut)]
        assert read(pieces, content_encoding=encoding) == document
    headers = {"content-encoding": encoding}
    sent = COMPRESS[encoding]("\ufeffé".encode())
    assert asyncio.run(read_text(request([sent], headers), 100)) == "é"


@pytest.mark.parametrize("encoding", COMPRESS)
@pytest.mark.parametrize("order", ["le", "be"])
def test_utf_16_is_refused_by_name(encoding: str, order: str) -> None:
    sent = COMPRESS[encoding](("\ufeff" + "ASK {}").encode(f"utf-16-{order}"))
    with pytest.raises(InvalidParameter, match="UTF-16"):
        read([sent], content_encoding=encoding)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_members_one_after_another(encoding: str) -> None:
    sent = COMPRESS[encoding](b"first ") + COMPRESS[encoding](b"second")
    assert read([sent], content_encoding=encoding) == b"first second"
    assert read([bytes([byte]) for byte in sent], content_encoding=encoding) == b"first second"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_every_truncation_is_an_error(encoding: str) -> None:
    sent = COMPRESS[encoding](b"a short document, cut short everywhere")
    for end in range(len(sent)):
        with pytest.raises(InvalidParameter):
            read([sent[:end]] if end else [], content_encoding=encoding)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("sent", [b"plain text", b"\x00" * 50, b"<s> <p> <o> ."])
def test_what_is_not_compressed_is_an_error(encoding: str, sent: bytes) -> None:
    with pytest.raises(InvalidParameter, match=f"is not {encoding}"):
        read([sent], content_encoding=encoding)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_damage_after_the_end_is_an_error(encoding: str) -> None:
    with pytest.raises(InvalidParameter):
        read([COMPRESS[encoding](b"whole") + b"rubbish"], content_encoding=encoding)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "compress", "bogus"])
def test_other_encodings_are_refused(encoding: str) -> None:
    with pytest.raises(UnsupportedMediaType, match="gzip, zstd"):
        read([b""], content_encoding=encoding)


@pytest.mark.parametrize("encoding", COMPRESS)
def test_the_limit_counts_expanded_bytes(encoding: str) -> None:
    document = b"x" * 1000
    assert read([COMPRESS[encoding](document)], limit=1000, content_encoding=encoding) == document
    with pytest.raises(BodyTooLarge):
        read([COMPRESS[encoding](document)], limit=999, content_encoding=encoding)


def test_an_announced_length_is_refused_before_anything_is_read() -> None:
    async def receive() -> Message:
        raise AssertionError("the body was read")

    scope = {"type": "http", "method": "POST", "headers": [(b"content-length", b"11")]}
    for reader in (read_body, read_text):
        with pytest.raises(BodyTooLarge):
            asyncio.run(reader(Request(scope, receive), 10))


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_is_defused_in_little_memory(encoding: str) -> None:
    bomb = COMPRESS[encoding](bytes(300_000_000))
    assert len(bomb) < 400_000
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLarge):
            asyncio.run(_discard(request([bomb], {"content-encoding": encoding}), 100_000_000))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


async def _discard(incoming: Request, limit: int) -> None:
    async for chunk in body_chunks(incoming, limit):
        assert len(chunk) <= 16_000_000


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_client_that_goes_away(encoding: str) -> None:
    sent = COMPRESS[encoding](b"half a document")[:9]
    headers = {"content-encoding": encoding} if encoding != "identity" else {}
    with pytest.raises(ClientDisconnect):
        asyncio.run(read_body(request([sent], headers, goes_away=True), 1000))


def test_text_is_utf8() -> None:
    assert asyncio.run(read_text(request(["é".encode()[:1], "é".encode()[1:]], {}), 10)) == "é"
    with pytest.raises(InvalidParameter, match="not UTF-8"):
        asyncio.run(read_text(request([b"\xff"], {}), 10))


@pytest.mark.parametrize(
    ("header", "is_read"),
    [
        ("text/turtle", True),
        ("text/turtle; charset=utf-8", True),
        ('text/turtle; charset="UTF-8"', True),
        ("text/turtle; charset=utf-16", False),
        ("turtle", False),
        ("", False),
    ],
)
def test_content_type(header: str, is_read: bool) -> None:
    incoming = request([], {"content-type": header})
    if is_read:
        assert content_type(incoming, ("text/turtle",)).name == "text/turtle"
    else:
        with pytest.raises(GraphDBError, match="text/turtle"):
            content_type(incoming, ("text/turtle",))
