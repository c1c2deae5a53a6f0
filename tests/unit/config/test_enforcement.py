"""What is configured and not built yet stops the start, where ignoring it would be dangerous."""

from pathlib import Path

import pytest

from graphdb.config import Settings, load_settings, refuse_unenforced
from graphdb.errors import ConfigError


def test_defaults_start() -> None:
    refuse_unenforced(Settings())


@pytest.mark.parametrize(
    "text", ["[acl]", "[authorization]", "[holonic]\nenabled = true", "[search]\nhybrid_scorer = 'linear'"]
)
def test_what_is_merely_absent_or_idle_is_accepted(tmp_path: Path, text: str) -> None:
    (tmp_path / "graphdb.toml").write_text(text)
    refuse_unenforced(load_settings(environ={}, directory=tmp_path))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[cluster]\nenabled = true", "cluster.enabled"),
        ("[authentication]\nenabled = true\nbasic = {enabled = true}", "authentication.enabled"),
    ],
)
def test_unkept_promise_is_refused(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "graphdb.toml").write_text(text)
    settings = load_settings(environ={}, directory=tmp_path)
    with pytest.raises(ConfigError) as raised:
        refuse_unenforced(settings)
    assert str(raised.value) == f"{key} is configured, but this version does not enforce it yet"
