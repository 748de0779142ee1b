"""Addresses, and gRPC servers that listen on them: one way for every process, with one text for what can go wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import grpc
import grpc.aio

from apportion.core.errors import InputError
from apportion.proto.wire import CHANNEL_OPTIONS

_HOST_PORT = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\s\[\]]+):(?P<port>\d{1,5})\Z")


def check_address(address: str) -> str:
    """`address` if it is HOST:PORT or unix:PATH; InputError, which says so, if not."""
    if address.startswith("unix:"):
        if address == "unix:":
            raise InputError("address 'unix:' has no path: write unix:/run/apportion.sock")
        return address
    found = _HOST_PORT.match(address)
    if found is None or int(found["port"]) > 65_535:
        raise InputError(f"address {address!r} is neither HOST:PORT (127.0.0.1:7000) nor unix:PATH")
    return address


def check_addresses(text: str) -> tuple[str, ...]:
    """Addresses separated by commas, at least one."""
    addresses = tuple(check_address(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise InputError("no address was given: write HOST:PORT, several separated by commas")
    return addresses


async def listen(
    address: str,
    register: Callable[[grpc.aio.Server], None],
    interceptors: Sequence[grpc.aio.ServerInterceptor[Any, Any]] = (),
) -> tuple[grpc.aio.Server, str]:
    """Start a gRPC server on `address`; `register` adds its services. Returns it with the address really bound.

    Port 0 takes a free port. Raises InputError when the address cannot be had: in use, no permission, no such host.
    """
    check_address(address)
    # Without this two processes could share a port on Linux, and each would get half of the calls.
    options = [*CHANNEL_OPTIONS, ("grpc.so_reuseport", 0)]
    server = grpc.aio.server(options=options, interceptors=list(interceptors))
    register(server)
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise InputError(_why_not(address)) from error
    if port == 0:
        raise InputError(_why_not(address))
    await server.start()
    bound = address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"
    return server, bound


def _why_not(address: str) -> str:
    return (
        f"cannot listen on {address}: it is in use or not allowed here; stop the process that has it, or choose another"
    )
