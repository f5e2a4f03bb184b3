"""Run `ctx` as users do: as a real process, with its own home, in a clean environment. Nothing here can hang."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PATIENCE = 30.0  # seconds after which a test has failed because something hangs

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
needs_dev_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
needs_dev_fd = pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="there is no /dev/fd here")


# Tests that run in the background of a script, or below nohup, ignore signals; what they start must not.
IGNORED = [number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_IGN]


def _listen(then: Callable[[], object] | None) -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_DFL)
    if then is not None:
        then()


class Done(NamedTuple):
    """What a process left: its output, its errors, its exit code (-n for signal n)."""

    out: bytes
    err: bytes
    code: int


class User:
    """Somebody with a home, a state folder, a working folder and `ctx` on the PATH."""

    def __init__(self, folder: Path) -> None:
        self.home, self.state, self.work = folder / "home", folder / "state", folder / "work"
        programs = folder / "bin"
        for made in (self.home, self.state, self.work, programs):
            made.mkdir()
        ctx = programs / "ctx"
        ctx.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ctxkit "$@"\n')
        ctx.chmod(0o755)
        self.environ = {
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.state),
            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def leave(self) -> None:
        """End what is still running, and all it started."""
        for process in self._started:
            end(process)

    def start(
        self,
        *argv: str | bytes,
        env: Mapping[str, str | None] | None = None,
        stdin: int | IO[Any] = subprocess.DEVNULL,
        stdout: int | IO[Any] = subprocess.PIPE,
        stderr: int | IO[Any] = subprocess.PIPE,
        **settings: Any,
    ) -> subprocess.Popen[bytes]:
        """Start a program in the working folder, in a session of its own."""
        changes = env or {}
        environ = {**self.environ, **{name: value for name, value in changes.items() if value is not None}}
        for name in [name for name, value in changes.items() if value is None]:
            environ.pop(name, None)
        settings = {"cwd": self.work, "start_new_session": True, **settings}
        if IGNORED:
            settings["preexec_fn"] = partial(_listen, settings.get("preexec_fn"))
        process = subprocess.Popen(argv, env=environ, stdin=stdin, stdout=stdout, stderr=stderr, **settings)
        self._started.append(process)
        return process

    def run(self, *argv: str | bytes, input: bytes | None = None, **settings: Any) -> Done:
        """Run a program to its end; give it `input` through a pipe."""
        if input is not None:
            settings["stdin"] = subprocess.PIPE
        return finish(self.start(*argv, **settings), input)

    def start_ctx(self, *words: str | bytes, **settings: Any) -> subprocess.Popen[bytes]:
        """Start ctx."""
        return self.start(sys.executable, "-m", "ctxkit", *words, **settings)

    def ctx(self, *words: str | bytes, input: bytes | None = None, **settings: Any) -> Done:
        """Run ctx to its end."""
        return self.run(sys.executable, "-m", "ctxkit", *words, input=input, **settings)

    def sh(self, script: str, *words: str, **settings: Any) -> Done:
        """Run a script in bash."""
        return self.run("bash", "-c", script, "bash", *words, **settings)

    @property
    def spills(self) -> list[Path]:
        """The spills there are in the default folder."""
        return sorted((self.state / "ctxkit" / "spill").glob("*"))

    @property
    def spill(self) -> Path:
        """The one spill there is."""
        (path,) = self.spills
        return path

    def file(self, name: str | bytes, content: bytes) -> Path:
        """Write a file in the working folder."""
        path = self.work / os.fsdecode(name)
        path.write_bytes(content)
        return path


def finish(process: subprocess.Popen[bytes], input: bytes | None = None, *, patience: float = PATIENCE) -> Done:
    """Wait until a process has ended, and return what it left; one that hangs is killed and fails the test."""
    try:
        out, err = process.communicate(input, timeout=patience)
    except subprocess.TimeoutExpired:
        end(process)
        raise AssertionError(f"still running after {patience:g} seconds: {process.args!r}") from None
    return Done(out or b"", err or b"", process.returncode)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that `start` made, and its group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.kill()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            try:
                stream.close()
            except OSError:  # what was not written yet
                pass
    process.wait(PATIENCE)


def eventually(what: Callable[[], Any], *, patience: float = PATIENCE) -> Any:
    """Wait until something is true, and return it."""
    give_up = time.monotonic() + patience
    while not (found := what()):
        assert time.monotonic() < give_up, f"never came true: {what}"
        time.sleep(0.01)
    return found


def read_until(fd: int, wanted: bytes, *, patience: float = PATIENCE) -> bytes:
    """Read from a descriptor until something wanted was there."""
    data = b""
    give_up = time.monotonic() + patience
    while wanted not in data:
        ready, _, _ = select.select([fd], [], [], max(0.0, give_up - time.monotonic()))
        assert ready, f"{wanted!r} never came, only {data!r}"
        try:
            more = os.read(fd, 65536)
        except OSError:  # a terminal whose last user has left
            more = b""
        assert more, f"{wanted!r} never came, only {data!r}"
        data += more
    return data


def is_running(pid: int) -> bool:
    """Say whether a process is there and no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if os.path.isdir("/proc/self"):
        try:
            return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] != b"Z"
        except FileNotFoundError:
            return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False).stdout.strip()
    return bool(state) and not state.startswith(b"Z")


class Terminal:
    """A pseudo-terminal: `user` is what a program has, `keyboard` is where a person types and reads."""

    def __init__(self) -> None:
        self.keyboard, self.user = pty.openpty()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *failure: object) -> None:
        self.hang_up()

    @property
    def settings(self) -> dict[str, Any]:
        """What to start a program with, so that this is its controlling terminal."""
        return {"preexec_fn": lambda: fcntl.ioctl(self.user, termios.TIOCSCTTY, 0)}

    def hang_up(self) -> None:
        """Close both ends."""
        for fd in (self.keyboard, self.user):
            if fd >= 0:
                os.close(fd)
        self.keyboard = self.user = -1

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.keyboard, keys)
