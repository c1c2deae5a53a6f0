"""What holds of every page for browsers that we store: it is ours, whole, and asks no other host."""

import re
from gzip import decompress
from hashlib import sha256
from importlib.resources import files

import httpx

from serve.graph.browser_pages import StoredPage

__all__ = ["check_file", "check_page", "vendored_files"]


def check_page(answer: httpx.Response, own: str) -> None:
    """answer is the page, which loads what is below the relative path own."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert "unsafe-eval" not in policy
    assert re.findall(rf'(?:src|href)="(?!{own}/|data:,")', answer.text) == []


def check_file(answer: httpx.Response, page: StoredPage, name: str) -> None:
    """answer is one of a page's files, as it is stored or unpacked."""
    assert answer.status_code == 200
    assert answer.headers["content-type"] == page.files[name]
    assert answer.headers["x-content-type-options"] == "nosniff"
    packed = files(page.package) / f"{name}.gz"
    stored = (
        decompress(packed.read_bytes()) if packed.is_file() else (files(page.package) / name).read_bytes()
    )
    assert answer.content == stored


def vendored_files(page: StoredPage) -> set[str]:
    """The names of the files that are not ours, which are what `VENDORED.md` says of them."""
    folder = files(page.package)
    told = dict(re.findall(r"^\| `(.+?)` \|.*\| `(\w{64})` \|$", (folder / "VENDORED.md").read_text(), re.M))
    for name, digest in told.items():
        assert sha256(decompress((folder / f"{name}.gz").read_bytes())).hexdigest() == digest
    return set(told)
