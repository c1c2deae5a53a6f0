"""The page of settings says what the settings are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from graphdb.config import Settings
from graphdb.config.reference import reference

PAGE = Path(__file__).resolve().parents[3] / "docs" / "configuration.md"


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Every settings class that is reached from an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models(field.annotation)
    for argument in getattr(annotation, "__args__", ()):
        yield from models(argument)


def test_page_is_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == reference(), "python -m graphdb.config.reference > docs/configuration.md"


def test_every_key_is_documented() -> None:
    page = reference()
    seen = set(models(Settings))
    assert len(seen) >= 18
    for model in seen:
        assert model.__doc__, model
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"
            nested = list(models(field.annotation))
            assert nested or f"| `{name}` |" in page, f"{model.__name__}.{name}"


def test_sections_stand_under_their_own_names() -> None:
    headings = [line for line in reference().splitlines() if line.startswith("## ")]
    assert "## `[server]`" in headings
    assert "## `[authentication.ldap]`" in headings
    assert "## `[[authentication.api_keys]]`" in headings
    assert "## `[acl.contexts.NAME]`" in headings
    assert len(headings) == len(set(headings))
