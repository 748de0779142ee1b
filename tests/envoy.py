"""A real Envoy in front of a rate limit service, for tests: HTTP in, a 200 out, `ratelimit` in between.

Envoy runs as a process of its own on free loopback ports. No path of it may be longer than a socket's may.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sysconfig
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.http_load import HttpConnection

READY_S = 30.0
"""Envoy starts within a second or two on an idle machine."""

STOP_S = 5.0

ADMIN_FILE = "admin-address"


@asynccontextmanager
async def running_envoy(
    rls_address: str, folder: Path, *, domain: str = "api", dimensions: Sequence[str] = ("tenant",)
) -> AsyncIterator[str]:
    """A ready Envoy that asks the service at `rls_address`; gives its own HOST:PORT. It is ended with the block.

    Each request makes one descriptor: dimension `tenant` is the header `x-tenant`, and so on. Its files, the log
    among them, are in `folder`.
    """
    process = _start(folder, _settings(rls_address, f"unix:{folder}/upstream", domain, dimensions))
    try:
        yield await _ready(process, folder)
    finally:
        _end(process)


def _start(folder: Path, settings: dict[str, Any]) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "envoy.json").write_text(json.dumps(settings, indent=2))
    with (folder / "envoy.stderr").open("wb") as errors:
        return subprocess.Popen(
            [
                Path(sysconfig.get_path("scripts")) / "envoy",
                *("--config-path", folder / "envoy.json"),
                *("--admin-address-path", folder / ADMIN_FILE),
                *("--log-path", folder / "envoy.log"),
                *("--log-level", "warning"),
                *("--concurrency", "1"),
                "--disable-hot-restart",
            ],
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


async def _ready(process: subprocess.Popen[bytes], folder: Path) -> str:
    """Wait until Envoy says that it is live; returns the address that its listener got."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        assert process.poll() is None, f"Envoy ended with {process.returncode}: {_read(folder, 'envoy.log')[-2000:]}"
        admin = _read(folder, ADMIN_FILE)
        address = await _listener(admin) if admin else None
        if address is not None:
            return address
        await asyncio.sleep(0.02)
    raise AssertionError(f"Envoy was not ready within {READY_S:g} s; its log is in {folder}")


def _read(folder: Path, name: str) -> str:
    """A file's text, "" while there is none."""
    path = folder / name
    return path.read_text().strip() if path.exists() else ""


async def _listener(admin: str) -> str | None:
    """The listener's HOST:PORT, None while Envoy is not live."""
    try:
        async with HttpConnection(admin) as connection:
            if (await connection.get("/ready", {"connection": "close"})).status != 200:
                return None
        async with HttpConnection(admin) as connection:
            listed = json.loads((await connection.get("/listeners?format=json", {"connection": "close"})).body)
    except (OSError, asyncio.IncompleteReadError):
        return None
    addresses = [listener["local_address"] for listener in listed["listener_statuses"]]
    socket = next(address["socket_address"] for address in addresses if "socket_address" in address)
    return f"{socket['address']}:{socket['port_value']}"


def _settings(rls_address: str, upstream: str, domain: str, dimensions: Sequence[str]) -> dict[str, Any]:
    """Two listeners: the one under test, first, and the service behind it, which says "passed" to everything.

    That one is needed: Envoy limits no route that answers by itself.
    """
    passed = {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": "passed"}}}
    actions = [{"request_headers": {"header_name": f"x-{name}", "descriptor_key": name}} for name in dimensions]
    limited = {
        "match": {"prefix": "/"},
        "route": {"cluster": "upstream", "rate_limits": [{"actions": actions}]},
    }
    return {
        "admin": {"address": _address("127.0.0.1:0")},
        "static_resources": {
            "listeners": [
                _listener_at("127.0.0.1:0", limited, [_rate_limit(domain)]),
                _listener_at(upstream, passed, []),
            ],
            "clusters": [_cluster("apportion", rls_address, http2=True), _cluster("upstream", upstream, http2=False)],
        },
    }


def _listener_at(address: str, route: dict[str, Any], filters: list[dict[str, Any]]) -> dict[str, Any]:
    """A listener for HTTP/1.1 with one route."""
    router = {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": _type("envoy.extensions.filters.http.router.v3.Router")},
    }
    manager = {
        "@type": _type("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "http",
        "codec_type": "HTTP1",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": [*filters, router],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    return {"name": address, "address": _address(address), "filter_chains": [chain]}


def _rate_limit(domain: str) -> dict[str, Any]:
    """The filter. It gives the service a second and denies without it, so that nothing passes by accident."""
    settings = {
        "@type": _type("envoy.extensions.filters.http.ratelimit.v3.RateLimit"),
        "domain": domain,
        "timeout": "1s",
        "failure_mode_deny": True,
        "enable_x_ratelimit_headers": "DRAFT_VERSION_03",
        "rate_limit_service": {
            "transport_api_version": "V3",
            "grpc_service": {"envoy_grpc": {"cluster_name": "apportion"}, "timeout": "1s"},
        },
    }
    return {"name": "envoy.filters.http.ratelimit", "typed_config": settings}


def _cluster(name: str, address: str, *, http2: bool) -> dict[str, Any]:
    """One service; `http2` as gRPC needs it."""
    version: dict[str, Any] = {"http2_protocol_options": {}} if http2 else {"http_protocol_options": {}}
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "1s",
        "typed_extension_protocol_options": {options: {"@type": _type(options), "explicit_http_config": version}},
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(address)}}]}],
        },
    }


def _address(address: str) -> dict[str, Any]:
    if address.startswith("unix:"):
        return {"pipe": {"path": address.removeprefix("unix:")}}
    host, _, port = address.rpartition(":")
    return {"socket_address": {"address": host, "port_value": int(port)}}


def _type(name: str) -> str:
    return f"type.googleapis.com/{name}"
