"""Signing in with a password of the directory (LDAP), in a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chromium import browser, why_no_browser
from tests.support.service import Service
from tests.support.slapd import BASE, MANAGER, SECRET, Slapd, needs_slapd
from tests.workbench.test_sign_in import sign_in

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    needs_slapd,
    pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser())),
]

CONFIGURATION = """
[server]
public_probes = true

[authentication]
enabled = true

[authentication.ldap]
server_url = "{directory}"
bind_dn = "{manager}"
bind_password = "${{DIRECTORY_PASSWORD}}"
user_search_base = "{base}"
group_role_mapping = {{"CN=Editors, OU=Groups, {base}" = "writer"}}
"""


@pytest.fixture
def listed(tmp_path: Path) -> Iterator[Service]:
    """A service that asks a directory who somebody is."""
    (tmp_path / "slapd").mkdir()
    directory = Slapd(tmp_path / "slapd")
    service = Service(tmp_path / "data", environment={"DIRECTORY_PASSWORD": SECRET})
    try:
        directory.add_group("cn=editors", directory.add_user("ada", "of ada"))
        text = CONFIGURATION.format(directory=directory.url, manager=MANAGER, base=BASE)
        (tmp_path / "graphdb.toml").write_text(text)
        yield service.start()
    finally:
        service.close()
        directory.close()


def test_a_user_of_the_directory_signs_in(listed: Service) -> None:
    with browser() as page:
        page.resize(1280, 800)
        sign_in(page, listed, "ada", "not hers")
        page.wait_for("!!document.querySelector('.welcome .notice.bad')")
        page.open(f"{listed.url}/?again")
        sign_in(page, listed, "ada", "of ada")
        page.wait_for("/ada\\s*writer/.test(document.querySelector('.who')?.textContent ?? '')")
