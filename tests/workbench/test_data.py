"""The Data page in a browser: loading, cancelling, what the parser refuses, the graphs, SHACL."""

import gzip
import json
from pathlib import Path

import pytest
from backports import zstd

from tests.support.chromium import Chromium
from tests.support.service import Service

pytestmark = [pytest.mark.ray, pytest.mark.slow]

DROP = ".drop input[type=file]"
OLYMPICS = Path(__file__).parents[3] / "shared" / "data" / "olympics-medals.nt.gz"


def choose(service: Service, page: Chromium, *files: Path) -> None:
    """Open the page, and choose files as the button does."""
    page.open(f"{service.url}/#/data?tab=load")
    page.wait_for(f"!!document.querySelector('{DROP}')")
    page.choose_files(DROP, *map(str, files))
    page.wait_for(f"document.querySelectorAll('.file').length === {len(files)}")


def into_graph(page: Chromium, iri: str) -> None:
    page.evaluate(
        "(() => { const into = document.querySelector('.columns select'); into.value = 'named'; "
        "into.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    page.click(".columns .input[placeholder]")
    page.write(iri)


def load(page: Chromium) -> None:
    page.click(".page .card .button.primary")


def state(page: Chromium, wanted: str, timeout_s: float = 60) -> None:
    page.wait_for(f"document.querySelector('.file')?.dataset.state === '{wanted}'", timeout_s)


def count(service: Service, graph: str) -> int:
    return int(service.select(f"SELECT (COUNT(*) AS ?n) {{ GRAPH <{graph}> {{ ?s ?p ?o }} }}")[0]["n"])


def test_a_compressed_file_is_loaded_into_a_graph(museum: Service, page: Chromium) -> None:
    if not OLYMPICS.exists():
        pytest.skip(f"there is no {OLYMPICS}")
    choose(museum, page, OLYMPICS)
    into_graph(page, "urn:data:olympics")
    load(page)
    state(page, "done", 120)
    wanted = len({line for line in gzip.decompress(OLYMPICS.read_bytes()).splitlines() if line.strip()})
    assert count(museum, "urn:data:olympics") == wanted
    assert f"{wanted:,} triples" in page.evaluate("document.querySelector('.file').textContent")
    museum.update("DROP GRAPH <urn:data:olympics>")


@pytest.mark.parametrize("coding", ["", ".gz", ".zst"])
def test_what_the_parser_refuses_is_shown_at_its_line(
    museum: Service, page: Chromium, tmp_path: Path, coding: str
) -> None:
    lines = [f'<urn:data:{number}> <urn:data:p> "{number}" .' for number in range(2000)]
    lines[1233] = "<urn:data:x> <urn:data:p> <img onerror=alert(1)> ."
    text = "\n".join(lines).encode()
    file = tmp_path / f"wrong.ttl{coding}"
    packed = {"": text, ".gz": gzip.compress(text), ".zst": zstd.compress(text)}
    file.write_bytes(packed[coding])
    choose(museum, page, file)
    load(page)
    state(page, "failed")
    page.wait_for("document.querySelector('.excerpt .wrong .number')?.textContent === '1234'")
    assert "onerror" in page.evaluate("document.querySelector('.excerpt .wrong').textContent")
    assert page.evaluate("document.querySelectorAll('.file img').length") == 0
    assert not museum.select("SELECT * { ?s <urn:data:p> ?o }")  # nothing of it was stored
    page.complaints.clear()  # the browser notes the 400


def test_an_upload_is_cancelled(museum: Service, page: Chromium, tmp_path: Path) -> None:
    file = tmp_path / "large.nt"
    file.write_text("".join(f'<urn:cancelled:{n}> <urn:cancelled> "{n}" .\n' for n in range(100_000)))
    choose(museum, page, file)
    into_graph(page, "urn:data:cancelled")
    page.upload_rate(500_000)
    load(page)
    page.wait_for("document.querySelector('.file')?.textContent.match(/\\/s, .* left/)")
    assert page.evaluate("Number(document.querySelector('[role=progressbar]').ariaValueNow)") < 90
    page.click(".file .button.small")
    state(page, "cancelled")
    page.upload_rate(None)
    assert "nothing of this file was stored" in page.evaluate("document.querySelector('.file').textContent")
    assert count(museum, "urn:data:cancelled") == 0
    page.complaints.clear()


def test_packed_files_of_other_kinds_are_refused_at_once(
    museum: Service, page: Chromium, tmp_path: Path
) -> None:
    file = tmp_path / "data.zip"
    file.write_bytes(b"PK")
    choose(museum, page, file)
    state(page, "failed")
    assert "Unpack it first" in page.evaluate("document.querySelector('.file').textContent")


def click_in_graph(page: Chromium, iri: str, button: str) -> None:
    page.wait_for(
        "(() => { const row = [...document.querySelectorAll('.graph-row')]"
        f".find((one) => one.querySelector('.name').textContent === {json.dumps(iri)}); "
        f"const found = row?.querySelector({json.dumps(button)}); found?.click(); return !!found; }})()"
    )


def test_graphs_are_cleared_and_deleted(museum: Service, page: Chromium) -> None:
    museum.update('INSERT DATA { GRAPH <urn:data:g> { <urn:data:a> <urn:data:b> "c", "d" } }')
    page.open(f"{museum.url}/#/data?tab=graphs")
    click_in_graph(page, "urn:data:g", "button.quiet:not(.icon):not([aria-haspopup])")
    page.click("dialog .danger")
    page.wait_for(
        "[...document.querySelectorAll('.graph-row')].find((one) => one.textContent.startsWith('urn:data:g'))"
        "?.textContent.includes('0 triples')"
    )
    click_in_graph(page, "urn:data:g", "button[title^=Delete]")
    page.click("dialog .danger")
    page.wait_for("!document.querySelector('.graphs').textContent.includes('urn:data:g')")
    assert museum.select("SELECT ?g { GRAPH ?g {} FILTER(?g = <urn:data:g>) }") == []


def test_a_report_leads_to_the_offending_resource(museum: Service, page: Chromium) -> None:
    page.open(f"{museum.url}/#/data?tab=validate")
    page.click(".segments .tab:nth-child(2)")
    page.click(".field-editor .cm-content")
    page.write(
        "PREFIX sh: <http://www.w3.org/ns/shacl#> PREFIX m: <https://museum.example/ontology#> "
        "<urn:R> sh:targetClass m:Person ; sh:property [ sh:path m:died ; sh:minCount 1 ] ."
    )
    page.press("Enter", control=True)
    page.wait_for("!!document.querySelector('.report tbody tr')")
    assert page.evaluate("document.querySelector('.report tbody a').getAttribute('href')") == (
        "#/explore?iri=https%3A%2F%2Fmuseum.example%2Fid%2Fruth-amsel"
    )
    assert page.evaluate("document.querySelector('.report h2').textContent") == "The data do not conform"


def test_shapes_of_a_graph(museum: Service, page: Chromium) -> None:
    page.open(f"{museum.url}/#/data?tab=validate")
    page.wait_for("document.querySelector('.card select')?.value === 'https://museum.example/shapes'")
    page.click(".card .button.primary")
    page.wait_for("!!document.querySelector('.report h2')")


def test_wrong_shapes_are_underlined(museum: Service, page: Chromium) -> None:
    page.open(f"{museum.url}/#/data?tab=validate")
    page.click(".segments .tab:nth-child(2)")
    page.click(".field-editor .cm-content")
    page.write("<urn:R> a ;")
    page.press("Enter", control=True)
    page.wait_for(
        "!!document.querySelector('.notice.bad') && !!document.querySelector('.cm-lintRange-error')"
    )
    page.complaints[:] = [
        one for one in page.complaints if "400" not in one
    ]  # the browser reports the status
