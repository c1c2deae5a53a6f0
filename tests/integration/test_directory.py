"""The running service with users of a real directory, failures counted in a real Redis, and an audit log."""

import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from redis import Redis

from tests.support.redis_server import RedisServer, needs_redis
from tests.support.service import Service
from tests.support.slapd import BASE, MANAGER, SECRET, Slapd, needs_slapd
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow, needs_slapd, needs_redis]

CONFIGURATION = """
[server]
public_probes = true  # by which the test knows that it is ready

[audit]
enabled = true

[authentication]
enabled = true
rate_limiting = {{max_attempts = 3, lockout_duration = 60, backend = "redis", redis_url = "{redis}"}}

[authentication.ldap]
server_url = "{directory}"
bind_dn = "{manager}"
bind_password = "${{DIRECTORY_PASSWORD}}"
user_search_base = "{base}"
group_role_mapping = {{"CN=Editors, OU=Groups, {base}" = "writer"}}
"""
ADA, GUEST = ("ada", "of ada"), ("guest", "of a guest")


@dataclass
class Running:
    service: Service
    directory: Slapd
    redis: RedisServer


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("directory")
    (path / "slapd").mkdir()
    directory, redis = Slapd(path / "slapd"), RedisServer(path, "of redis")
    environment = {"DIRECTORY_PASSWORD": SECRET}
    service = Service(path / "data", search=True, environment=environment)
    try:
        directory.add_group("cn=editors", directory.add_user(*ADA))
        text = CONFIGURATION.format(redis=redis.url, directory=directory.url, manager=MANAGER, base=BASE)
        (path / "graphdb.toml").write_text(text)
        directory.add_user(*GUEST)
        service.start()
        service.wait_until(lambda: searches(service), 60)
        yield Running(service, directory, redis)
    finally:
        service.close()
        redis.close()
        directory.close()


def searches(service: Service) -> bool:
    """Whether the search port, which is ready after the graph port, tells a guest what it may not."""
    answer = httpx.get(f"{service.search_url}/_cat/indices", auth=GUEST, trust_env=False, timeout=HANG_S)
    assert answer.status_code in (403, 503), answer.text
    return answer.status_code == 403


def audit_lines(service: Service) -> list[dict[str, object]]:
    return [json.loads(line) for line in audit_file(service).read_text().splitlines()]


def audit_file(service: Service) -> Path:
    return service.data_dir / "audit" / "audit.log"


def test_a_user_of_the_directory_on_both_ports(running: Running) -> None:
    service = running.service
    with httpx.Client(auth=ADA, trust_env=False, timeout=HANG_S) as ada:
        text = "INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:b> 1 } }"
        assert ada.post(f"{service.url}/update", data={"update": text}).status_code == 200
        assert ada.put(f"{service.search_url}/books/_doc/1", json={"title": "Emma"}).status_code == 201
        assert ada.delete(f"{service.search_url}/books").status_code == 403

    def found() -> list[tuple[object, ...]]:
        lines = [line for line in audit_lines(service) if line["principal"] == "ada"]
        return sorted((line["port"], line["route"], line["status"], line["provider"]) for line in lines)

    expected = [
        ("graph", "/update", 200, "ldap"),
        ("search", "/{index}", 403, "ldap"),
        ("search", "/{index}/_doc/{id}", 201, "ldap"),
    ]
    service.wait_until(lambda: found() == expected, HANG_S)
    assert stat.S_IMODE(audit_file(service).stat().st_mode) == 0o600
    text = audit_file(service).read_text()
    assert ADA[1] not in text
    assert SECRET not in text


def test_while_the_directory_is_away(running: Running) -> None:
    running.directory.stop()
    try:
        answer = httpx.get(running.service.url, auth=("nobody", "x"), trust_env=False, timeout=HANG_S)
    finally:
        running.directory.start()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_failures_are_counted_in_redis(running: Running) -> None:
    """The last test: whoever comes from here is out then."""
    service = running.service
    for number in range(3):
        url = (service.url, service.search_url)[number % 2]
        assert httpx.get(url, auth=("ada", "wrong"), trust_env=False, timeout=HANG_S).status_code == 401
    for url in (service.url, service.search_url):
        assert httpx.get(url, auth=ADA, trust_env=False, timeout=HANG_S).status_code == 429
    with Redis.from_url(running.redis.url) as redis:
        assert redis.keys() == [b"graphdb:failures:{127.0.0.1}:locked"]
    metrics = httpx.get(f"{service.url}/metrics", trust_env=False).text
    assert "service_service_lockout_shared 1.0" in metrics
    assert "service_service_audit_lines_dropped_total 0.0" in metrics
