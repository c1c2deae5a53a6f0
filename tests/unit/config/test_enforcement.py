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


def test_unkept_promise_is_refused(tmp_path: Path) -> None:
    (tmp_path / "graphdb.toml").write_text("[authentication]\nenabled = true\nbasic = {enabled = true}")
    settings = load_settings(environ={}, directory=tmp_path)
    with pytest.raises(ConfigError) as raised:
        refuse_unenforced(settings)
    reason = "authentication.enabled is configured, but this version does not enforce it yet"
    assert str(raised.value) == reason
