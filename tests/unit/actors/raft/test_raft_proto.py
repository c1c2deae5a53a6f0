"""The generated code is that of `raft.proto`."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("name", ["raft_pb2.py", "raft_pb2.pyi"])
def test_the_generated_code_is_up_to_date(tmp_path: Path, name: str) -> None:
    compiler = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", f"-I{ROOT}"]
    options = [f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", "actors/raft/raft.proto"]
    subprocess.run([*compiler, *options], check=True, cwd=ROOT)
    assert (tmp_path / "actors/raft" / name).read_text() == (ROOT / "actors/raft" / name).read_text()
