"""`GuardedFetch` against real servers: what it connects to, what it follows, and where it stops."""

import asyncio
import gzip
import ipaddress
import itertools
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.egress.guarded_fetch import Bounds, Call, Fetched, GuardedFetch
from actors.egress.rules import HostRules
from graphdb.errors import EvaluationFailed, HostNotAllowed
from tests.support.certificate import certificate_and_key, needs_openssl
from tests.support.remote_host import answering, remote_host
from tests.support.timing import HANG_S, quick_enough

TIMEOUT_S = 0.5
BYTES_MAX = 100_000


def guarded(
    rules: Sequence[str], names: dict[str, list[str]] | None = None, timeout_s: float = HANG_S
) -> GuardedFetch:
    async def resolve(name: str) -> list[str]:
        found = (names or {}).get(name)
        if found is None:
            raise socket.gaierror("no such name")
        return found

    bounds = Bounds(timeout_s, "the.timeout", BYTES_MAX, "the.size")
    return GuardedFetch(HostRules("SERVICE", rules), bounds, resolve=resolve)


def fetch(fetcher: GuardedFetch, url: str, **call: object) -> Fetched:
    return asyncio.run(fetcher.fetch(Call(url, **call)))  # type: ignore[arg-type]


def test_an_answer_comes_back_as_it_is() -> None:
    with remote_host(answering(b"what", "text/turtle; charset=utf-8", 404)) as host:
        got = fetch(guarded(["127.0.0.1"]), host.url + "p?q=%20#f", headers=(("Accept", "text/turtle"),))
        assert got == Fetched(host.url + "p?q=%20#f", 404, "text/turtle; charset=utf-8", b"what")
        lines = host.requests[0].decode().split("\r\n")
    assert lines[0] == "GET /p?q=%20 HTTP/1.1"
    names = {line.partition(":")[0].lower() for line in lines[1:] if line}
    assert names == {"host", "user-agent", "accept-encoding", "connection", "accept"}
    assert f"Host: 127.0.0.1:{host.port}" in lines


def test_a_body_that_is_not_wanted_is_not_waited_for() -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 202 X\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * 10_000)
        connection.recv(1)  # until the other side has gone

    with remote_host(endless) as host:
        assert fetch(guarded(["127.0.0.1"]), host.url, method="POST", wants_body=False).status == 202


def test_a_destination_is_looked_at_without_calling_it() -> None:
    fetcher = guarded(["127.0.0.1", "in.example", "out.example"], {"in.example": ["10.0.0.1"]})
    with remote_host(answering()) as host:
        asyncio.run(fetcher.check(host.url))
        asyncio.run(fetcher.check("http://out.example/"))  # it cannot be resolved yet
        for url in ("http://in.example/", "http://10.0.0.1/", "http://other.example/"):
            with pytest.raises(HostNotAllowed):
                asyncio.run(fetcher.check(url))
        assert host.requests == []


def test_a_query_is_posted() -> None:
    with remote_host(answering()) as host:
        fetch(guarded(["127.0.0.1"]), host.url, method="POST", body=b"ASK {}")
    assert host.requests[0].startswith(b"POST / HTTP/1.1")
    assert b"\r\nContent-Length: 6\r\n" in host.requests[0]
    assert host.requests[0].endswith(b"\r\n\r\nASK {}")


def test_ipv6() -> None:
    with remote_host(answering(b"six"), "::1") as host:
        assert fetch(guarded(["::1/128"]), host.url).body == b"six"
        with pytest.raises(HostNotAllowed):
            fetch(guarded(["::2"]), host.url)
    assert len(host.requests) == 1


def test_a_name_is_resolved_once_and_the_connection_goes_there() -> None:
    asked = []

    async def resolve(name: str) -> list[str]:
        asked.append(name)
        return ["127.0.0.3"] if len(asked) == 1 else ["127.0.0.1"]

    with remote_host(answering(b"right"), "127.0.0.3") as host:
        fetcher = guarded(["Data.Example", "127.0.0.0/8"])
        fetcher._resolve = resolve
        assert fetch(fetcher, f"http://data.example:{host.port}/").body == b"right"
        assert f"Host: data.example:{host.port}\r\n".encode() in host.requests[0]
    assert asked == ["data.example"]


def test_each_address_of_a_name_is_tried() -> None:
    names = {"data.example": ["127.0.0.2", "::ffff:127.0.0.3"]}
    with remote_host(answering(b"second"), "127.0.0.3") as host:
        fetcher = guarded(["data.example", "127.0.0.0/8"], names)
        assert fetch(fetcher, f"http://data.example:{host.port}/").body == b"second"


def test_one_address_that_is_not_allowed_refuses_the_name() -> None:
    names = {"data.example": ["127.0.0.2", "127.0.0.1"]}
    with remote_host(answering(), "127.0.0.2") as host, remote_host(answering()) as other:
        for rules in (["data.example"], ["data.example", "127.0.0.2"]):
            with pytest.raises(
                HostNotAllowed, match=r"data.example has the address 127.0.0.\d, which is not"
            ):
                fetch(guarded(rules, names), f"http://data.example:{host.port}/")
        assert not host.requests
        assert not other.requests


def test_localhost() -> None:
    with remote_host(answering(b"here")) as host:
        bounds = Bounds(HANG_S, "", BYTES_MAX, "")
        url = f"http://localhost:{host.port}/"
        assert fetch(GuardedFetch(HostRules("LOAD", ["localhost"]), bounds), url).body == b"here"
        with pytest.raises(HostNotAllowed):
            fetch(GuardedFetch(HostRules("LOAD", ["127.0.0.0/8"]), bounds), url)


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with remote_host(answering(b"direct")) as host, remote_host(answering(b"proxy"), "127.0.0.2") as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert fetch(guarded(["127.0.0.1"]), host.url).body == b"direct"
        assert not proxy.requests


STATUSES = (301, 302, 307, 308)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_redirects_keep_the_method(status: int, method: str) -> None:
    with remote_host(answering(b"there"), "127.0.0.2") as there:
        moved = answering(status=status, headers=(f"Location: {there.url}x",))
        with remote_host(moved) as host:
            got = fetch(guarded(["127.0.0.0/8"]), host.url, method=method, body=b"q" * (method == "POST"))
    assert (got.url, got.body) == (there.url + "x", b"there")
    assert there.requests[0].startswith(f"{method} /x ".encode())
    assert there.requests[0].endswith(b"q") == (method == "POST")
    assert f"Host: 127.0.0.2:{there.port}\r\n".encode() in there.requests[0]


def test_see_other_is_for_get_alone() -> None:
    with (
        remote_host(answering(b"there")) as there,
        remote_host(answering(status=303, headers=(f"Location: {there.url}",))) as host,
    ):
        assert fetch(guarded(["127.0.0.1"]), host.url).body == b"there"
        with pytest.raises(EvaluationFailed, match="303"):
            fetch(guarded(["127.0.0.1"]), host.url, method="POST", body=b"q")
    assert len(there.requests) == 1


NOT_FOLLOWED = {
    "http://127.0.0.2:PORT/": "no rule covers the address 127.0.0.2",
    "//127.0.0.2:PORT/": "no rule covers the address 127.0.0.2",
    "http://metadata.example/": "no rule is the name 'metadata.example'",
    "http://inner.example:PORT/": "inner.example has the address 127.0.0.2",
    "http://u:p@127.0.0.1:PORT/": "it holds credentials",
    "http://0x7f.0.0.2:PORT/": "no rule is the name",
    "http://[::ffff:127.0.0.2]:PORT/": "no rule covers the address 127.0.0.2",
    "file:///etc/passwd": "only http and https",
    "gopher://127.0.0.1/": "only http and https",
}


@pytest.mark.parametrize("target", NOT_FOLLOWED)
def test_a_redirect_is_checked_like_a_first_url(target: str) -> None:
    with remote_host(answering(), "127.0.0.2") as there:
        location = target.replace("PORT", str(there.port))
        with remote_host(answering(status=302, headers=(f"Location: {location}",))) as host:
            fetcher = guarded(["127.0.0.1", "inner.example"], {"inner.example": ["127.0.0.2"]})
            with pytest.raises(HostNotAllowed) as refused:
                fetch(fetcher, host.url)
        assert NOT_FOLLOWED[target] in str(refused.value)
        assert not there.requests


def test_redirects_end() -> None:
    with remote_host(answering()) as host:
        host.answer = answering(status=302, headers=("Location: /again",))
        with pytest.raises(EvaluationFailed, match="more than 5 redirects"):
            fetch(guarded(["127.0.0.1"]), host.url)
        assert len(host.requests) == 6


def test_five_redirects_are_followed() -> None:
    number = itertools.count(1)

    def answer(connection: socket.socket) -> None:
        step = next(number)
        moved = answering(status=302, headers=(f"Location: /{step}",))
        (moved if step <= 5 else answering(b"end"))(connection)

    with remote_host(answer) as host:
        assert fetch(guarded(["127.0.0.1"]), host.url).url == host.url + "5"


def test_a_redirect_without_a_target_is_an_answer() -> None:
    with remote_host(answering(b"where?", status=302)) as host:
        assert fetch(guarded(["127.0.0.1"]), host.url).status == 302


@pytest.mark.parametrize(
    "target", ["http://[::1", "http://[", "http://a:b/", "//[x]/", "http://\\[::1]/", "h]"]
)
def test_a_redirect_to_what_is_no_url(target: str) -> None:
    with remote_host(answering(status=302, headers=(f"Location: {target}",))) as host:
        with pytest.raises((EvaluationFailed, HostNotAllowed)):
            fetch(guarded(["127.0.0.1"]), host.url)
        assert len(host.requests) <= 6


def drip(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def drip_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-A: b\r\n")
        time.sleep(0.02)


def endless_continue(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
        time.sleep(0.02)


def redirect_slowly(connection: socket.socket) -> None:
    time.sleep(0.15)
    answering(status=302, headers=("Location: /",))(connection)


def endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")


def huge_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-A: " + b"b" * 10_000 + b"\r\n")


def silent(connection: socket.socket) -> None:
    connection.recv(1)


BOMB = gzip.compress(bytes(50_000_000))
FAILURES = {
    "silent": (silent, r"no answer within 0.5 s \(the.timeout\)"),
    "drip": (drip, "no answer within 0.5 s"),
    "a head in drips": (drip_head, "no answer within 0.5 s"),
    "endless early hints": (endless_continue, "no answer within 0.5 s"),
    "slow redirects": (redirect_slowly, "no answer within 0.5 s"),
    "endless": (endless, r"larger than 100000 bytes \(the.size\)"),
    "too large": (answering(b"x" * (BYTES_MAX + 1)), "larger than 100000 bytes"),
    "a bomb": (answering(BOMB, headers=("Content-Encoding: gzip",)), "larger than 100000 bytes"),
    "a huge head": (huge_head, "[Tt]oo l"),
    "no gzip": (answering(b"plain", headers=("Content-Encoding: gzip",)), "is not gzip"),
    "half of gzip": (
        answering(gzip.compress(b"x" * 99)[:-9], headers=("Content-Encoding: gzip",)),
        "cut short",
    ),
    "an unknown coding": (answering(b"", headers=("Content-Encoding: br",)), "Content-Encoding br"),
    "cut short": (lambda c: c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"), "closed connection"),
    "a chunk cut short": (
        lambda c: c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nx"),
        "closed connection",
    ),
    "no HTTP": (lambda c: c.sendall(b"220 smtp.example ESMTP\r\n"), "disconnected"),
    "nothing": (lambda c: None, "disconnected"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_is_no_whole_answer_within_bounds_fails(name: str) -> None:
    answer, message = FAILURES[name]
    with remote_host(answer) as host:
        for took in quick_enough(TIMEOUT_S + 0.5):
            with took, pytest.raises(EvaluationFailed, match=message) as failed:
                fetch(guarded(["127.0.0.1"], timeout_s=TIMEOUT_S), host.url)
    reason = str(failed.value).removeprefix(f"SERVICE <{host.url}>: ")
    assert reason
    assert reason != str(failed.value)


def test_as_much_as_is_allowed_is_read() -> None:
    whole = b"x" * BYTES_MAX
    with remote_host(answering(gzip.compress(whole), headers=("Content-Encoding: gzip",))) as host:
        assert fetch(guarded(["127.0.0.1"]), host.url).body == whole


def test_nobody_listens() -> None:
    with remote_host(answering()) as host:
        pass
    with pytest.raises(EvaluationFailed, match=f"cannot connect to 127.0.0.1 port {host.port}"):
        fetch(guarded(["127.0.0.1"]), host.url)
    with pytest.raises(EvaluationFailed, match=r"gone.example cannot be resolved"):
        fetch(guarded(["gone.example"]), "http://gone.example/")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate_and_key(tmp_path_factory.mktemp("tls"))


def serving_tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@needs_openssl
def test_certificates_are_checked_against_the_host_that_was_asked_for(certificate: tuple[Path, Path]) -> None:
    async def resolve(name: str) -> list[str]:
        return ["127.0.0.1"]

    rules = HostRules("LOAD", ["127.0.0.1", "localhost", "other.example"])
    bounds = Bounds(5, "", BYTES_MAX, "")
    trusting = GuardedFetch(
        rules, bounds, resolve=resolve, tls=lambda: ssl.create_default_context(cafile=certificate[0])
    )
    with remote_host(answering(b"safe"), tls=serving_tls(certificate)) as host:
        assert fetch(trusting, host.url).body == b"safe"
        assert fetch(trusting, host.url.replace("127.0.0.1", "localhost")).body == b"safe"
        with pytest.raises(EvaluationFailed, match="certificate"):
            fetch(trusting, host.url.replace("127.0.0.1", "other.example"))
        with pytest.raises(EvaluationFailed, match="certificate"):
            fetch(GuardedFetch(rules, bounds), host.url)
    assert len(host.requests) == 2


@needs_openssl
def test_no_redirect_leads_from_https_to_http(certificate: tuple[Path, Path]) -> None:
    trusting = GuardedFetch(
        HostRules("LOAD", ["127.0.0.1"]),
        Bounds(5, "", BYTES_MAX, ""),
        tls=lambda: ssl.create_default_context(cafile=certificate[0]),
    )
    with remote_host(answering(b"plain")) as plain:
        moved = answering(status=302, headers=(f"Location: {plain.url}",))
        with remote_host(moved, tls=serving_tls(certificate)) as host:
            with pytest.raises(HostNotAllowed, match="not from https"):
                fetch(trusting, host.url)
            host.answer = answering(b"safe")
            with remote_host(answering(status=302, headers=(f"Location: {host.url}",))) as first:
                assert fetch(trusting, first.url).body == b"safe"
        assert not plain.requests


def spellings(address: ipaddress.IPv4Address) -> st.SearchStrategy[str]:
    """Ways to write an IPv4 address that some program or other understands."""
    number, parts = int(address), str(address).split(".")
    dressed: list[Callable[[int], str]] = [
        hex,
        oct,
        lambda n: f"0{n:o}",
        str,
        lambda n: f"{n:03}",
        lambda n: f"0X{n:X}",
    ]
    return st.one_of(
        st.sampled_from([str(number), hex(number), f"0{number:o}", f"[::ffff:{address}]", f"[::{address}]"]),
        st.sampled_from([f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]", f"[0:0:0:0:0:FFFF:{address}]"]),
        st.sampled_from([f"{parts[0]}.{number & 0xFFFFFF}", f"{parts[0]}.{parts[1]}.{number & 0xFFFF}"]),
        st.lists(st.sampled_from(dressed), min_size=4, max_size=4).map(
            lambda ways: ".".join(way(int(part)) for way, part in zip(ways, parts, strict=True))
        ),
        st.sampled_from([f"{address}.", "".join(f"%{ord(c):02x}" for c in str(address)), f"{address}%25lo"]),
        st.sampled_from(
            ["".join(chr(ord(c) + 0xFEE0) for c in str(address)), str(address).replace(".", "。")]
        ),
        st.sampled_from([f"127.0.0.1@{address}", f"{address}:80@127.0.0.1", f"{address}\\@127.0.0.1"]),
    )


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


@given(spelling=st.sampled_from(["127.0.0.1", "127.0.0.2"]).map(ipaddress.IPv4Address).flatmap(spellings))
@settings(deadline=None, max_examples=150)
def test_whatever_the_spelling_only_the_allowed_address_is_called(spelling: str) -> None:
    """Names are resolved by the system, which understands many spellings; only 127.0.0.1 is allowed."""
    bounds = Bounds(TIMEOUT_S, "", BYTES_MAX, "")
    rules = ["127.0.0.1"] + [spelling] * (not is_address(spelling.strip("[].")))
    fetcher = GuardedFetch(HostRules("LOAD", rules), bounds)
    with (
        remote_host(answering(b"allowed")) as host,
        socket.create_server(("127.0.0.2", host.port)) as forbidden,
    ):
        forbidden.setblocking(False)
        with suppress(HostNotAllowed, EvaluationFailed):
            assert fetch(fetcher, f"http://{spelling}:{host.port}/").body == b"allowed"
        with pytest.raises(BlockingIOError):
            forbidden.accept()
