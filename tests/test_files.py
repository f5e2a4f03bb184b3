"""Files are appended to only if nobody else did meanwhile, and replaced all at once or not at all."""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxkit import files, process
from ctxkit.errors import OutputError, StateError


def state(path: Path) -> files.State:
    fd = os.open(path, os.O_RDONLY)
    try:
        return files.State(fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"", b"new\n"), (b"old\n", b"old\nnew\n"), (b"torn", b"torn\nnew\n"), (b"\xff\n", b"\xff\nnew\n")],
)
def test_append(tmp_path: Path, before: bytes, after: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(before)
    files.append(str(path), b"new\n", state(path))
    assert path.read_bytes() == after


def test_append_refuses_a_file_that_grew(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"a\n")
    seen = state(path)
    path.write_bytes(b"a\nb\n")
    with pytest.raises(StateError, match="changed since it was read"):
        files.append(str(path), b"new\n", seen)
    assert path.read_bytes() == b"a\nb\n"


def test_append_refuses_a_change_of_equal_size_and_time(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"a\n")
    seen, times = state(path), os.stat(path)
    path.write_bytes(b"b\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(StateError):
        files.append(str(path), b"new\n", seen)


def test_append_refuses_another_file_of_that_name(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"a\n")
    seen = state(path)
    (tmp_path / "other").write_bytes(b"a\n")
    os.replace(tmp_path / "other", path)
    with pytest.raises(StateError):
        files.append(str(path), b"new\n", seen)


def hold_lock(path: str, ready: object) -> None:
    import fcntl

    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    ready.set()  # type: ignore[attr-defined]
    time.sleep(60)


def test_append_gives_up_on_a_held_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOCK_PATIENCE", 0.2)
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"a\n")
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=hold_lock, args=(str(path), ready))
    holder.start()
    try:
        assert ready.wait(30)
        with pytest.raises(StateError, match="locked by another process"):
            files.append(str(path), b"new\n", state(path))
    finally:
        holder.kill()
        holder.join()
    assert path.read_bytes() == b"a\n"


def try_append(path: str, number: int) -> None:
    fd = os.open(path, os.O_RDONLY)
    for attempt in range(10_000):
        try:
            files.append(path, b"%d\n" % number, files.State(fd))
            return
        except StateError:
            time.sleep(0.001 * (attempt % 7))


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"")
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=try_append, args=(str(path), number)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert sorted(path.read_bytes().split()) == [b"%d" % number for number in range(6)]


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Let no file grow beyond 8 KB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_disk")
def test_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"a\n" * 100)
    with pytest.raises(OutputError):
        files.append(str(path), b"x" * 10_000 + b"\n", state(path))
    assert path.read_bytes() == b"a\n" * 100
    with pytest.raises(OutputError):
        files.replace(str(path), [b"x" * 5000, b"y" * 5000])
    assert path.read_bytes() == b"a\n" * 100
    assert os.listdir(tmp_path) == ["s.jsonl"]


def test_replace_keeps_mode_and_link(tmp_path: Path) -> None:
    path, link = tmp_path / "real", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    files.replace(str(link), [b"n", b"ew"])
    assert (path.read_bytes(), path.stat().st_mode & 0o777, link.is_symlink()) == (b"new", 0o640, True)


def test_replace_makes_a_new_file_with_the_usual_mode(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        files.replace(str(tmp_path / "new"), [b"x"])
    finally:
        os.umask(mask)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o644


def test_replace_stops_cleanly_when_its_source_fails(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        files.replace(str(tmp_path / "f"), chunks())
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_missing_folder_is_an_error_with_the_name(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="nowhere/f: No such file or directory"):
        files.replace(str(tmp_path / "nowhere" / "f"), [b""])


def test_clock_and_ids() -> None:
    assert process.timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert process.timestamp(1_790_000_000_007) == "2026-09-21T14:13:20.007Z"
    assert abs(process.now() / 1000 - time.time()) < 5
    first, second = process.new_session_id(), process.new_session_id()
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", first)
    assert first[:11] <= second[:11]
    assert re.fullmatch("[0-9a-f]{8}", process.new_entry_id(()))
