"""What the contract's tests share: each test that names `world` runs once for each kind of store."""

from pathlib import Path

import pytest

from tests.contract.worlds import World


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A world of each kind of store."""
    return World(request.param, tmp_path)
