"""The parameters of a component. Settings are text to Elasticsearch, so "2" and "true" will do."""

from collections.abc import Mapping
from typing import Any

from graphdb.search.errors import illegal_argument

__all__ = ["Parameters"]

_NUMBER_MAX = 1_000_000  # no parameter of a component needs a larger number


class Parameters:
    """What the settings say of one component."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = name
        self.values = values

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def text(self, key: str, default: str) -> str:
        value = self.values.get(key)
        if value is None:
            return default
        if isinstance(value, list | dict):
            raise illegal_argument(f"Failed to parse value [{value}] for setting [{key}]")
        return str(value).lower() if isinstance(value, bool) else str(value)

    def required(self, key: str, message: str) -> str:
        if key not in self:
            raise illegal_argument(message)
        return self.text(key, "")

    def number(self, key: str, default: int, low: int = 0, high: int = _NUMBER_MAX) -> int:
        text = self.text(key, str(default))
        try:
            number = int(text)
        except ValueError:
            raise illegal_argument(f"Failed to parse value [{text}] for setting [{key}]") from None
        if number < low:
            raise illegal_argument(f"Failed to parse value [{number}] for setting [{key}] must be >= {low}")
        if number > high:
            raise illegal_argument(f"Failed to parse value [{number}] for setting [{key}] must be <= {high}")
        return number

    def flag(self, key: str, default: bool) -> bool:
        text = self.text(key, "true" if default else "false")
        if text not in ("true", "false"):
            raise illegal_argument(f"Failed to parse value [{text}] as only [true] or [false] are allowed.")
        return text == "true"

    def words(self, key: str) -> list[str] | None:
        """A list, or one text with commas; None where there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, list):
            return [str(item) for item in value]
        return [item.strip() for item in self.text(key, "").split(",") if item.strip()]

    def lines(self, key: str) -> list[str] | None:
        """A list as it stands; a single text is a list of one."""
        value = self.values.get(key)
        if value is None:
            return None
        return [str(item) for item in value] if isinstance(value, list) else [self.text(key, "")]
