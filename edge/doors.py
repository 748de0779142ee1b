"""The doors of an edge on one address: Envoy's rate limit service, `apportion.v1.Limiter`, health and reflection."""

from __future__ import annotations

from typing import Any

from envoy.service.ratelimit.v3 import rls_pb2_grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from apportion.edge import limiter_service, rls
from apportion.edge.decider import Decider
from apportion.edge.grpc_methods import Methods
from apportion.edge.grpc_server import GrpcServer
from apportion.health import Checks
from apportion.proto.v1 import limiter_pb2_grpc

SERVICES = (rls.SERVICE, limiter_service.SERVICE)


class Doors:
    """An edge's doors over gRPC."""

    def __init__(self, server: GrpcServer, checks: Checks) -> None:
        self._server = server
        self._checks = checks

    @property
    def address(self) -> str:
        """The address really bound, with the port that was taken for port 0."""
        return self._server.address

    async def open(self, address: str) -> None:
        """Listen there."""
        await self._server.open(address)

    async def set_serving(self, serving: bool) -> None:
        """What health says from now on; call it when the decider becomes ready, and when it is no longer."""
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", *SERVICES):
            await self._checks.set(service, status)

    async def close(self, grace_s: float) -> None:
        """Say "not serving", take no new requests, and give those under way up to `grace_s` seconds."""
        await self._checks.end()
        await self._server.close(grace_s)


async def open_doors(address: str, decider: Decider) -> Doors:
    """Listen on `address`, HOST:PORT or unix:PATH. InputError when it cannot be had."""
    checks, methods = Checks(), Methods()
    offered: Any = methods
    rls_pb2_grpc.add_RateLimitServiceServicer_to_server(rls.EnvoyRateLimit(decider), offered)
    limiter_pb2_grpc.add_LimiterServicer_to_server(limiter_service.LimiterService(decider), offered)
    health_pb2_grpc.add_HealthServicer_to_server(checks, offered)
    names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
    add_reflection: Any = reflection_pb2_grpc.add_ServerReflectionServicer_to_server  # its stubs have no types
    add_reflection(reflection.aio.ReflectionServicer(names), offered)

    # Health says SERVING of "" from the start on unless told otherwise, so it is told before anybody can ask.
    unready = health_pb2.HealthCheckResponse.NOT_SERVING
    for service in ("", *SERVICES):
        await checks.set(service, unready)
    doors = Doors(GrpcServer(methods), checks)
    await doors.set_serving(decider.ready)
    await doors.open(address)
    return doors
