"""`cluster.yaml`, and what Ray's cluster launcher makes of such a description."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

__all__ = ["PROJECT", "described_cluster", "filled_by_ray"]

PROJECT = Path(__file__).resolve().parents[2]


def described_cluster() -> dict[str, Any]:
    """cluster.yaml, as it is written."""
    config: dict[str, Any] = yaml.safe_load((PROJECT / "cluster.yaml").read_text())
    return config


def filled_by_ray(config: dict[str, Any]) -> dict[str, Any]:
    """What the launcher makes of a valid description; in its own process, for Ray warns at import."""
    script = """
import json, sys
from ray.autoscaler._private.util import prepare_config, validate_config
config = prepare_config(json.load(sys.stdin))
validate_config(config)
print(json.dumps(config))
"""
    command = [sys.executable, "-c", script]
    checked = subprocess.run(command, input=json.dumps(config), capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    filled: dict[str, Any] = json.loads(checked.stdout)
    return filled
