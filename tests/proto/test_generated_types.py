"""The generated code is typed: calls, servicers and messages pass strict mypy, and a mistake in them does not."""

from pathlib import Path

import pytest
from mypy import api

from tests.checkout import ROOT

RIGHT = """
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

import grpc.aio

from apportion.proto.v1 import limiter_pb2, limiter_pb2_grpc, region_pb2, region_pb2_grpc


class Region(region_pb2_grpc.RegionServicer):
    async def Attach(
        self, request_iterator: AsyncIterable[region_pb2.FromEdge], context: Any
    ) -> AsyncIterator[region_pb2.ToEdge]:
        async for message in request_iterator:
            yield region_pb2.ToEdge(report_ack=region_pb2.ReportAck(number=message.report.number))


async def allowed(channel: grpc.aio.Channel) -> bool:
    stub: limiter_pb2_grpc.LimiterAsyncStub = limiter_pb2_grpc.LimiterStub(channel)
    answer = await stub.Decide(limiter_pb2.DecideRequest(domain="api"))
    return answer.allowed
"""
WRONG = """
from apportion.proto.v1 import region_pb2

region_pb2.Tick(epoch="now")
"""


def check(folder: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What mypy says of a module with that source."""
    monkeypatch.setenv("MYPYPATH", str(ROOT / "src"))
    module = folder / "module.py"
    module.write_text(source)
    output, _, _ = api.run(["--strict", "--config-file=", f"--cache-dir={folder}", str(module)])
    return output


def test_calls_and_servicers_are_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A servicer and a client written against the generated code need no cast and no ignore."""
    assert check(tmp_path, RIGHT, monkeypatch) == "Success: no issues found in 1 source file\n"


def test_a_field_of_the_wrong_type_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are not `Any`: mypy sees that an epoch is no text."""
    assert 'incompatible type "str"; expected "int"' in check(tmp_path, WRONG, monkeypatch)
