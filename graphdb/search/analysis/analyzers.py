"""`Analyzers`: what the settings of one index define, and what every index has."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdb.search.analysis.analyzer import Analyzer, Normalizer
from graphdb.search.analysis.builtin import BUILT_IN
from graphdb.search.analysis.components import Components, Failure
from graphdb.search.analysis.parameters import Parameters
from graphdb.search.errors import illegal_argument

__all__ = ["Analyzers"]


class Analyzers:
    """Immutable. default and default_search are the names for text fields whose mappings name none."""

    def __init__(
        self, analyzers: Mapping[str, Analyzer], normalizers: Mapping[str, Analyzer], components: Components
    ) -> None:
        self._analyzers = dict(analyzers)
        self._normalizers = normalizers
        self.components = components
        self.default = "default" if "default" in analyzers else "standard"
        self.default_search = "default_search" if "default_search" in analyzers else self.default

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], max_ngram_diff: int = 1, max_shingle_diff: int = 3
    ) -> "Analyzers":
        """settings is what stands under `index.analysis`; illegal argument where it cannot be."""
        unknown = settings.keys() - {"analyzer", "normalizer", "tokenizer", "filter", "char_filter"}
        if unknown:
            raise illegal_argument(f"unknown setting [index.analysis.{min(unknown)}]")
        components = Components(settings, max_ngram_diff, max_shingle_diff)
        return cls(
            _built(settings, "analyzer", lambda name, value: _analyzer(name, value, components)),
            _built(settings, "normalizer", lambda name, value: _normalizer(name, value, components)),
            components,
        )

    def find(self, name: str) -> Analyzer | None:
        """None where there is none of that name."""
        found = self._analyzers.get(name)
        if found is None and name in BUILT_IN:
            found = self._analyzers[name] = BUILT_IN[name](Parameters(name, {}))
        if found is None and name in ("default", "default_search"):
            return self.find("default" if self.default == "default" else "standard")
        return found

    def analyzer(self, name: str) -> Analyzer:
        """Illegal argument where there is none of that name."""
        found = self.find(name)
        if found is None:
            raise illegal_argument(f"analyzer [{name}] has not been configured in mappings")
        return found

    def find_normalizer(self, name: str) -> Analyzer | None:
        if name in self._normalizers:
            return self._normalizers[name]
        return _normalizer(name, {"filter": ["lowercase"]}, self.components) if name == "lowercase" else None

    def normalizer(self, name: str) -> Normalizer:
        """Illegal argument where there is none of that name."""
        found = self.find_normalizer(name)
        if found is None:
            raise illegal_argument(f"normalizer [{name}] not found")
        return found


def _built(
    settings: Mapping[str, Any], kind: str, build: Callable[[str, Mapping[str, Any]], Analyzer]
) -> dict[str, Analyzer]:
    definitions = settings.get(kind) or {}
    result = {}
    for name, value in definitions.items():
        if not isinstance(value, Mapping):
            raise illegal_argument(f"{kind} [{name}] must specify either an analyzer type, or a tokenizer")
        if name.startswith("_"):
            raise illegal_argument(f"analyzer name must not start with '_'. got \"{name}\"")
        result[name] = build(name, value)
    return result


def _analyzer(name: str, values: Mapping[str, Any], components: Components) -> Analyzer:
    parameters = Parameters(name, values)
    if "type" not in parameters and "tokenizer" not in parameters:
        raise illegal_argument(f"analyzer [{name}] must specify either an analyzer type, or a tokenizer")
    kind = parameters.text("type", "custom")
    if kind == "custom":
        return _custom(name, parameters, components)
    if kind not in BUILT_IN:
        raise illegal_argument(f"Unknown analyzer type [{kind}] for [{name}]")
    return BUILT_IN[kind](parameters)


def _custom(name: str, parameters: Parameters, components: Components) -> Analyzer:
    failure = Failure(f"Custom Analyzer [{name}] failed to find {{kind}} under name [{{name}}]")
    if "tokenizer" not in parameters:
        raise illegal_argument(f"Custom Analyzer [{name}] must be configured with a tokenizer")
    return components.chain(
        parameters.values["tokenizer"],
        _names(parameters, "filter"),
        _names(parameters, "char_filter"),
        failure,
        parameters.number("position_increment_gap", 100),
    )


def _normalizer(name: str, values: Mapping[str, Any], components: Components) -> Analyzer:
    parameters = Parameters(name, values)
    if parameters.text("type", "custom") != "custom":
        raise illegal_argument(f"Unknown normalizer type [{parameters.text('type', '')}] for [{name}]")
    if "tokenizer" in parameters:
        raise illegal_argument(f"Custom normalizer [{name}] cannot configure a tokenizer")
    failure = Failure(f"Custom normalizer [{name}] failed to find {{kind}} under name [{{name}}]", name)
    return components.chain(
        "keyword", _names(parameters, "filter"), _names(parameters, "char_filter"), failure, 0
    )


def _names(parameters: Parameters, key: str) -> Sequence[str]:
    return parameters.words(key) or []
