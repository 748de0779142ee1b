"""Addresses, and gRPC servers that listen on them: one way for every process, with one text for what can go wrong."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Callable
from pathlib import Path

import grpc
import grpc.aio

from apportion.core.errors import InputError
from apportion.proto.wire import CHANNEL_OPTIONS

UNIX_PATH_MAX = 107
"""Bytes of a socket's path: what the operating system's structure holds."""

_HOST_PORT = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\s\[\]]+):(?P<port>\d{1,5})\Z")


def check_address(address: str) -> str:
    """`address` if it is HOST:PORT or unix:PATH; InputError, which says so, if not."""
    if not _is_text(address):  # bytes of a command line that are not UTF-8; gRPC takes only text
        raise InputError(f"address {address!r} is not UTF-8 text")
    if address.startswith("unix:"):
        path = address.removeprefix("unix:")
        if not path:
            raise InputError("address 'unix:' has no path: write unix:/run/apportion.sock")
        if len(path.encode()) > UNIX_PATH_MAX:
            raise InputError(f"address {address!r}: the path of a socket has at most {UNIX_PATH_MAX} bytes")
        return address
    found = _HOST_PORT.match(address)
    if found is None or int(found["port"]) > 65_535:
        raise InputError(f"address {address!r} is neither HOST:PORT (127.0.0.1:7000) nor unix:PATH")
    return address


def _is_text(address: str) -> bool:
    try:
        address.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_addresses(text: str) -> tuple[str, ...]:
    """Addresses separated by commas, at least one."""
    addresses = tuple(check_address(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise InputError("no address was given: write HOST:PORT, several separated by commas")
    return addresses


async def listen(
    address: str,
    register: Callable[[grpc.aio.Server], None],
) -> tuple[grpc.aio.Server, str]:
    """Start a gRPC server on `address`; `register` adds its services. Returns it with the address really bound.

    Port 0 takes a free port. Raises InputError when the address cannot be had: in use, no permission, no such host.
    """
    check_address(address)
    _check_free(address)
    # Without this two processes could share a port on Linux, and each would get half of the calls.
    server = grpc.aio.server(options=[*CHANNEL_OPTIONS, ("grpc.so_reuseport", 0)])
    register(server)
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise _refused(address, "it is in use or not allowed here") from error
    if port == 0:
        raise _refused(address, "it is in use or not allowed here")
    await server.start()
    bound = address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"
    return server, bound


def _check_free(address: str) -> None:
    """Raise InputError, with the reason, where listening on `address` is bound to fail.

    gRPC tells the reason to its own log only, replaces the socket of a living process at a unix path, and is content
    when it gets one of the several addresses of a name.
    """
    if address.startswith("unix:"):
        _check_path_free(address, Path(address.removeprefix("unix:")))
        return
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise _refused(address, f"host {host!r} is not known ({error.strerror})") from error
    tried = [_bind_error(family, where) for family, _, _, _, where in found]
    errors = [each for each in tried if each is not None]
    fatal = [each for each in errors if each.errno != errno.EADDRNOTAVAIL]
    if fatal or len(errors) == len(found):
        raise _refused(address, str((fatal or errors)[0].strerror))


def _bind_error(family: int, where: object) -> OSError | None:
    """Why a socket cannot be bound there, None if it can."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)  # type: ignore[arg-type]
    except OSError as error:
        return error
    return None


def _check_path_free(address: str, path: Path) -> None:
    try:
        if not path.exists():
            if not path.parent.is_dir():
                raise _refused(address, f"there is no folder {path.parent}")
        elif not path.is_socket():
            raise _refused(address, "a file is there that is no socket")
        elif _is_answered(path):
            raise _refused(address, "another process listens there")
    except OSError as error:
        raise _refused(address, error.strerror or str(error)) from error


def _is_answered(path: Path) -> bool:
    """Whether a process listens on this socket; one that a killed process left behind may be replaced."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        return True


def _refused(address: str, reason: str) -> InputError:
    return InputError(
        f"cannot listen on {address}: {reason}; choose another address, or stop the process that has this one"
    )


def bind(address: str) -> tuple[list[socket.socket], str]:
    """Sockets that listen on `address` once a server takes them, and the address really bound. InputError as `listen`.

    Port 0 takes a free port, the same one for every address that the host's name has.
    """
    check_address(address)
    _check_free(address)
    if address.startswith("unix:"):
        return [_bind_path(address, Path(address.removeprefix("unix:")))], address
    host, _, port = address.rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    bound: list[socket.socket] = []
    for family, _, _, _, where in found:
        taken = bound[0].getsockname()[1] if bound else int(port)
        try:
            bound.append(_bind_socket(family, (where[0], taken, *where[2:])))
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                continue
            for each in bound:
                each.close()
            raise _refused(address, error.strerror or str(error)) from error
    if not bound:
        raise _refused(address, "none of the host's addresses is this machine's")
    return bound, f"{host}:{bound[0].getsockname()[1]}"


def unbind(address: str) -> None:
    """Remove the socket that a server left at a unix path; call it once nobody listens there."""
    if address.startswith("unix:"):
        Path(address.removeprefix("unix:")).unlink(missing_ok=True)


def _bind_socket(family: int, where: object) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(where)  # type: ignore[arg-type]
    except OSError:
        bound.close()
        raise
    return bound


def _bind_path(address: str, path: Path) -> socket.socket:
    """A socket at `path`, in the place of one that a killed process left there."""
    try:
        path.unlink(missing_ok=True)
        return _bind_socket(socket.AF_UNIX, str(path))
    except OSError as error:
        raise _refused(address, error.strerror or str(error)) from error
