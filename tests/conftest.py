"""What all tests share: how hypothesis runs, and a user with a home of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from shell import User

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    """Give a test its own home, its own folders and its own processes, which end with it."""
    someone = User(tmp_path)
    yield someone
    someone.leave()
