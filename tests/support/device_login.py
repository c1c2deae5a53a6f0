"""`graphdb auth login` as a person does it: the command in one place, a browser in another."""

import os
import re
import subprocess
from collections.abc import Mapping
from os import PathLike

from tests.support.oidc_provider import CLIENT, OidcProvider
from tests.support.service import COMMAND

__all__ = ["device_login"]


def device_login(
    provider: OidcProvider,
    *options: str,
    environment: Mapping[str, str],
    user: str = "ada",
    consents: bool = True,
) -> tuple[int, str]:
    """Sign in, or decline to; the exit code and all that the command has said."""
    command: list[str | PathLike[str]] = [
        COMMAND,
        "auth",
        "login",
        "--issuer",
        provider.issuer,
        "--client-id",
        CLIENT,
        *options,
    ]
    with subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        said = ""
        while (found := re.search(r"^or open (\S+)$", said, re.MULTILINE)) is None:
            line = process.stdout.readline()
            assert line, said
            said += line
        provider.approve(found[1], user, consents)
        said += process.stdout.read()
        return process.wait(30), said
