"""Where a setting comes from, and how a bad one is said."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from graphdb.config import Settings, load_settings
from graphdb.config.service import Columns
from graphdb.errors import ConfigError


def write(directory: Path, text: str, name: str = "graphdb.toml") -> Path:
    path = directory / name
    path.write_text(text)
    return path


def test_defaults_need_no_source(tmp_path: Path) -> None:
    assert load_settings(environ={}, directory=tmp_path) == Settings()


@pytest.mark.parametrize(
    ("command_line", "environment", "in_file", "port"),
    [
        pytest.param(7101, "7102", "7103", 7101, id="the command line wins"),
        pytest.param(None, "7102", "7103", 7102, id="then the environment"),
        pytest.param(None, None, "7103", 7103, id="then the file"),
        pytest.param(None, None, None, 7001, id="then the default"),
        pytest.param(7101, None, "7103", 7101, id="the command line over the file"),
    ],
)
def test_precedence(
    tmp_path: Path, command_line: int | None, environment: str | None, in_file: str | None, port: int
) -> None:
    if in_file:
        write(tmp_path, f"[server]\nport = {in_file}\n")
    environ = {"GRAPHDB_SERVER__PORT": environment} if environment else {}
    overrides = {"server": {"port": command_line, "host": None}}
    settings = load_settings(overrides=overrides, environ=environ, directory=tmp_path)
    assert (settings.server.port, settings.server.host) == (port, "127.0.0.1")


def test_sources_meet_in_one_section(tmp_path: Path) -> None:
    write(tmp_path, '[server]\nport = 7103\ncors = ["http://a.example"]\n[search]\nport = 9300\n')
    environ = {"GRAPHDB_SERVER__CORS": '["http://b.example"]', "GRAPHDB_SEARCH__ENABLED": "false"}
    settings = load_settings(environ=environ, directory=tmp_path)
    assert settings.server.port == 7103
    assert settings.server.cors == ("http://b.example",)
    assert (settings.search.port, settings.search.enabled) == (9300, False)


@pytest.mark.parametrize(
    ("option", "variable", "port"),
    [
        pytest.param(True, True, 1001, id="--config wins"),
        pytest.param(False, True, 1002, id="then GRAPHDB_CONFIG"),
        pytest.param(False, False, 1003, id="then graphdb.toml here"),
    ],
)
def test_which_file(tmp_path: Path, option: bool, variable: bool, port: int) -> None:
    given = write(tmp_path, "server.port = 1001", "given.toml")
    named = write(tmp_path, "server.port = 1002", "named.toml")
    write(tmp_path, "server.port = 1003")
    environ = {"GRAPHDB_CONFIG": str(named)} if variable else {}
    settings = load_settings(given if option else None, environ=environ, directory=tmp_path)
    assert settings.server.port == port


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbfserver.port = 1001\n")
    assert load_settings(path, environ={}).server.port == 1001


def test_hybrid_scorer_variable_wins_over_everything(tmp_path: Path) -> None:
    write(tmp_path, '[search]\nhybrid_scorer = "linear"\n')
    environ = {"ES_HYBRID_SCORER": "bayesian", "GRAPHDB_SEARCH__HYBRID_SCORER": "rrf"}
    overrides = {"search": {"hybrid_scorer": "linear"}}
    settings = load_settings(overrides=overrides, environ=environ, directory=tmp_path)
    assert settings.search.hybrid_scorer == "bayesian"


LDAP = """
[authentication.ldap]
server_url = "ldap://localhost"
bind_dn = "cn=service"
bind_password = {password}
user_search_base = "ou=people"
"""


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param('"${SECRET}"', "from outside", id="a reference"),
        pytest.param('"a${SECRET}"', "a${SECRET}", id="no reference: more text"),
        pytest.param('"plain"', "plain", id="no reference"),
    ],
)
def test_bind_password_reads_the_environment(tmp_path: Path, written: str, read: str) -> None:
    write(tmp_path, LDAP.format(password=written))
    settings = load_settings(environ={"SECRET": "from outside"}, directory=tmp_path)
    assert settings.authentication.ldap is not None
    assert settings.authentication.ldap.bind_password.get_secret_value() == read


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    write(tmp_path, LDAP.format(password='"hunter2"') + '[cluster]\nsecret = "0123456789abcdef"\n')
    shown = repr(load_settings(environ={}, directory=tmp_path))
    assert "hunter2" not in shown
    assert "0123456789abcdef" not in shown


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings(environ={"GRAPHDB_SERVER__DATA_DIR": "here"}, directory=tmp_path)
    assert settings.server.data_dir == tmp_path / "here"


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().server.port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("[server]\nprot = 1", "server.prot: unknown key", id="unknown key"),
        pytest.param("[sever]\nport = 1", "sever: unknown key", id="unknown section"),
        pytest.param(
            "[acl.contexts.a]\nseen = 1", "acl.contexts.a.seen: unknown key", id="unknown key, deep"
        ),
        pytest.param(
            "[server]\nport = 70000",
            "server.port: Input should be less than or equal to 65535",
            id="port",
        ),
        pytest.param(
            "[server\n", "not valid TOML: Expected ']' at the end of a table declaration", id="not TOML"
        ),
        pytest.param(
            '[server]\ntls_cert_file = "absent.pem"',
            "server.tls_cert_file: Path does not point to a file",
            id="no such file",
        ),
        pytest.param(
            '[server]\ntrusted_proxies = ["10.0.0.0/33"]',
            "server.trusted_proxies.0: '10.0.0.0/33' does not appear to be an IPv4 or IPv6 network",
            id="no network",
        ),
        pytest.param(
            '[security]\nservice_allow = ["https://x"]',
            "security.service_allow.0: 'https://x' is not a host name, an address or a CIDR range",
            id="no host",
        ),
        pytest.param("[search]\nlinear_weights = [0, 0]", "search: linear_weights are both 0", id="weights"),
        pytest.param(
            '[search]\nhybrid_scorer = "best"',
            "search.hybrid_scorer: Input should be 'rrf', 'linear' or 'bayesian'",
            id="unknown scorer",
        ),
        pytest.param(
            "[search]\nport = 7001", "server.port, search.port need different ports", id="one port for two"
        ),
        pytest.param(
            '[server]\nhost = "0.0.0.0"',
            "server.host = '0.0.0.0' is not loopback and authentication is off: everyone on the "
            "network could read and change everything; turn authentication.enabled on, or say "
            "server.allow_unauthenticated_network_access = true",
            id="open to the network",
        ),
        pytest.param(
            "[holonic]\nenabled = true\n[cluster]\nenabled = true",
            "holonic.enabled and cluster.enabled exclude each other: holonic is for standalone nodes",
            id="holonic in a cluster",
        ),
        pytest.param(
            '[cluster]\nenabled = true\naddress = "10.0.0.1:7002"',
            "cluster: address 10.0.0.1:7002 is not loopback: it needs TLS files or a secret",
            id="cluster in the open",
        ),
        pytest.param(
            '[cluster]\npeers = ["2@a:1", "2@b:1"]',
            "cluster: peers: each node_id stands once, and this node's own is not among them",
            id="a peer twice",
        ),
        pytest.param('[cluster]\npeers = ["2@a"]', "cluster: 'a' is not host:port", id="a peer without port"),
        pytest.param(
            "[graphql]\nmax_page_size = 10",
            "graphql: default_page_size is larger than max_page_size",
            id="page sizes",
        ),
        pytest.param(
            "[authentication]\nenabled = true",
            "authentication: enabled, but no ldap, oidc, jwt, basic (enabled) or api_keys: "
            "nobody could come in",
            id="nobody could come in",
        ),
        pytest.param(
            '[authentication.jwt]\nalgorithm = "HS256"\npublic_key_file = "/dev/null"\n'
            'audience="a"\nissuer="i"',
            "authentication.jwt.algorithm: Input should be 'RS256', 'RS384', 'RS512', 'ES256', 'ES384', "
            "'PS256', 'PS384', 'PS512' or 'EdDSA'\ngraphdb.toml: authentication.jwt.public_key_file: "
            "Path does not point to a file",
            id="symmetric signature, and no file: two lines",
        ),
        pytest.param(
            '[authentication.ldap]\nserver_url = "ldap://h"\nbind_dn = "d"\nuser_search_base = "b"\n'
            'bind_password = "${ABSENT}"',
            "authentication.ldap.bind_password: the environment variable ABSENT is not set",
            id="a reference to nothing",
        ),
        pytest.param(
            '[authentication.rate_limiting]\nbackend = "redis"',
            'authentication.rate_limiting: backend = "redis" needs redis_url',
            id="redis without address",
        ),
        pytest.param(
            '[acl.role_contexts]\nreader = "public"',
            "acl: role_contexts.reader: there is no context 'public'",
            id="unknown context",
        ),
        pytest.param(
            '[authorization.role_permissions]\neditor = "Everything"',
            "authorization.role_permissions.editor: Input should be 'Admin', 'Write', 'Read' or 'None'",
            id="unknown permission",
        ),
        pytest.param(
            '[[authentication.api_keys]]\nname = "ci"\nkey_sha256 = "secret"',
            "authentication.api_keys.0.key_sha256: String should match pattern '^[0-9a-f]{64}$'",
            id="a key instead of its digest",
        ),
    ],
)
def test_bad_file_is_said_in_one_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load_settings(environ={}, directory=Path())
    assert str(raised.value).startswith(f"{path.name}: {problem}")
    assert len(raised.value.problems) == 1 + problem.count("\n")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("GRAPHDB_SERVER__PROT", "1", "server.prot: unknown key"),
        ("GRAPHDB_SEVER__PORT", "1", "unknown key"),
        ("GRAPHDB_PORT", "1", "unknown key"),
        ("GRAPHDB_SERVER__CORS", "http://a.example", "lists and tables are written as JSON"),
        (
            "GRAPHDB_SERVER__PORT",
            "many",
            "server.port: Input should be a valid integer, unable to parse string as an integer",
        ),
        ("ES_HYBRID_SCORER", "best", "search.hybrid_scorer: Input should be 'rrf', 'linear' or 'bayesian'"),
    ],
)
def test_bad_variable_is_named(tmp_path: Path, name: str, value: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_settings(environ={name: value}, directory=tmp_path)
    assert str(raised.value) == f"environment variable {name}: {problem}"


def test_bad_command_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^command line: server\.port: Input should be greater"):
        load_settings(overrides={"server": {"port": 0}}, environ={}, directory=tmp_path)


@pytest.mark.parametrize("content", [b"\xff\xfe", None], ids=["not UTF-8", "absent"])
def test_unreadable_file(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"^{path}: ") as raised:
        load_settings(path, environ={})
    assert "\n" not in str(raised.value)


def test_variables_that_are_no_settings_are_left_alone(tmp_path: Path) -> None:
    environ = {
        "GRAPHDB_ENDPOINT": "http://x",
        "GRAPHDB_PROFILE": "p",
        "GRAPHDB_SHARED": "/s",
        "HOME": "/root",
    }
    assert load_settings(environ=environ, directory=tmp_path) == Settings()


def test_network_access_can_be_asked_for_in_words(tmp_path: Path) -> None:
    write(tmp_path, '[server]\nhost = "0.0.0.0"\nallow_unauthenticated_network_access = true\n')
    assert load_settings(environ={}, directory=tmp_path).server.host == "0.0.0.0"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_no_words(tmp_path: Path, host: str) -> None:
    assert (
        load_settings(overrides={"server": {"host": host}}, environ={}, directory=tmp_path).server.host
        == host
    )


def test_access_control_starts_with_authentication_and_not_without(tmp_path: Path) -> None:
    contexts = "[acl.contexts.nobody]\nvisible_graphs = ['**']\n"  # that none can reach are no mistake
    authentication = "[authentication]\nenabled = true\nbasic = {enabled = true}\n"
    (tmp_path / "graphdb.toml").write_text(authentication + contexts)
    assert load_settings(environ={}, directory=tmp_path).acl is not None
    (tmp_path / "graphdb.toml").write_text(contexts)
    with pytest.raises(ConfigError, match="authentication is off"):
        load_settings(environ={}, directory=tmp_path)


@pytest.mark.parametrize("shards", [0, 257, "many", 2.5, -1, None])
def test_a_number_of_shards_that_cannot_be_has_one_error(shards: object) -> None:
    with pytest.raises(ValidationError, match=r'1 validation error[^0]*a number from 1 to 256, nor "auto"'):
        Columns.model_validate({"shards": shards})


@pytest.mark.parametrize("shards", [1, 256, "auto", "4"])
def test_a_number_of_shards(shards: int | str) -> None:
    found = Columns.model_validate({"shards": shards}).shards
    assert found == (shards if shards == "auto" else int(shards))
