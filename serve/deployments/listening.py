"""Where a service listens, and whether it can."""

from graphdb.config import Settings
from graphdb.config.service import split_address
from graphdb.errors import UnavailableError
from serve.port_server import Listen, bind

__all__ = ["check_ports", "graph_listen", "search_listen"]


def graph_listen(settings: Settings) -> Listen:
    """The graph port."""
    server = settings.server
    return Listen(server.host, server.port, server.tls_cert_file, server.tls_key_file)


def search_listen(settings: Settings) -> Listen:
    """The search port; whether it is opened is another setting."""
    server = settings.server
    return Listen(server.host, settings.search.port, server.tls_cert_file, server.tls_key_file)


def check_ports(settings: Settings) -> None:
    """Raises UnavailableError where a port of the service is another's."""
    _check(graph_listen(settings))
    if settings.search.enabled:
        _check(search_listen(settings))
    if settings.cluster.enabled:
        host, port = split_address(settings.cluster.address)
        _check(Listen(host, port, None, None))


def _check(listen: Listen) -> None:
    try:
        bind(listen).close()
    except OSError as error:
        raise UnavailableError(f"cannot listen on {listen.host}:{listen.port}: {error.strerror}") from error
