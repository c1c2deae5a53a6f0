"""Port 7001 with a certificate."""

import ssl
from pathlib import Path

import httpx
import pytest

from tests.support.certificate import certificate_and_key, needs_openssl
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, needs_openssl]


def test_the_port_speaks_tls_and_nothing_else(tmp_path: Path) -> None:
    certificate, key = certificate_and_key(tmp_path)
    config = tmp_path / "graphdb.toml"
    config.write_text(f'[server]\ntls_cert_file = "{certificate}"\ntls_key_file = "{key}"\n')
    service = Service(tmp_path / "data", "--config", str(config))
    url = f"https://127.0.0.1:{service.port}"
    try:
        with httpx.Client(verify=ssl.create_default_context(cafile=certificate), trust_env=False) as client:
            service.start(wait=False)
            service.wait_until(lambda: client.get(f"{url}/health").json()["status"] == "healthy", 120)
            assert client.get(f"{url}/sparql", params={"query": "ASK {}"}).json()["boolean"] is True
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{service.url}/health", trust_env=False)
        service.wait_until(lambda: url in service.output, HANG_S)
        assert service.stop() == 0
    finally:
        service.close()
