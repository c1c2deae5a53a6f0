"""The service of `raft.proto` as gRPC methods, and how channels and servers for it are set up."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import grpc
import grpc.aio

from actors.raft.credentials import ClusterCredentials
from actors.raft.peer_protocol import FRAME_BYTES_MAX
from actors.raft.raft_pb2 import DESCRIPTOR, Frame

__all__ = ["FrameCall", "FrameContext", "make_channel", "make_server", "open_call"]

FrameCall: TypeAlias = "grpc.aio.StreamStreamCall[Frame, Frame]"
FrameContext: TypeAlias = "grpc.aio.ServicerContext[Frame, Frame]"
Handler: TypeAlias = Callable[[AsyncIterator[Frame], FrameContext], Awaitable[None]]

_SERVICE = DESCRIPTOR.services_by_name["Raft"].full_name
_RPCS_MAX = 1024  # at once, of all callers
_SIZES = [("grpc.max_receive_message_length", FRAME_BYTES_MAX), ("grpc.max_metadata_size", 4096)]
# a peer that is silent for 4 s is gone, whatever TCP believes
_KEEPALIVE = [
    ("grpc.keepalive_time_ms", 2000),
    ("grpc.keepalive_timeout_ms", 2000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
]
_CHANNEL = [
    *_SIZES,
    *_KEEPALIVE,
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),  # also how long an attempt to connect may take
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_retries", 0),  # a forwarded write goes out once
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
]
_SERVER = [
    *_SIZES,
    *_KEEPALIVE,
    ("grpc.so_reuseport", 0),  # two nodes on one port are a mistake
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
    ("grpc.max_concurrent_streams", _RPCS_MAX),
]


def make_channel(address: str, credentials: ClusterCredentials) -> grpc.aio.Channel:
    """A channel to a node; it connects, and connects again, by itself. Call it on the loop."""
    tls = credentials.for_channel()
    if tls is None:
        return grpc.aio.insecure_channel(address, options=_CHANNEL)
    return grpc.aio.secure_channel(address, tls, options=_CHANNEL)


def open_call(channel: grpc.aio.Channel, method: str) -> FrameCall:
    """Begin a call of Exchange or Forward."""
    multicallable: grpc.aio.StreamStreamMultiCallable[Frame, Frame] = channel.stream_stream(
        f"/{_SERVICE}/{method}",
        request_serializer=Frame.SerializeToString,
        response_deserializer=Frame.FromString,
    )
    return multicallable()


def make_server(
    address: str, credentials: ClusterCredentials, exchange: Handler, forward: Handler
) -> grpc.aio.Server:
    """A server that is bound and not yet started. Raises RuntimeError where it cannot bind."""
    server = grpc.aio.server(options=_SERVER, maximum_concurrent_rpcs=_RPCS_MAX)
    methods = {"Exchange": _method(exchange), "Forward": _method(forward)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, methods),))
    tls = credentials.for_server()
    if tls is None:
        server.add_insecure_port(address)
    else:
        server.add_secure_port(address, tls)
    return server


def _method(handler: Handler) -> "grpc.RpcMethodHandler[Frame, Frame]":
    return grpc.stream_stream_rpc_method_handler(
        handler,
        request_deserializer=Frame.FromString,
        response_serializer=Frame.SerializeToString,
    )
