"""Run a command and read what it prints, standard output and standard error in the order they come."""

from __future__ import annotations

import errno
import fcntl
import os
import time

from ctxkit import process
from ctxkit.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator

    from ctxkit.process import Interrupts
else:
    import _signal as signal

QUIET = 0.2  # seconds without output after the command's end that mean "that was all"
DRAIN = 2.0  # seconds at most that processes it left behind are listened to
GRACE = 2.0  # seconds between TERM and KILL


class Child:
    """A running command: read `output` to its end, then look at `exit_code`, `signal` and `timed_out`.

    The command has its own process group, which is ended as a whole. Only at a terminal, and without a time limit, it
    shares ours, so that the keyboard's signals reach it and it may read the keyboard.
    """

    __slots__ = ("_ended", "_fd", "_group", "_kill_at", "_pid", "_status", "_term_at", "duration", "timed_out")

    def __init__(self, argv: list[str], *, timeout: float | None = None) -> None:
        """Start argv. Raises CommandError: exit 127 if there is no such command, 126 if it cannot be run (env(1))."""
        own_group = timeout is not None or not process.stdin_is_terminal()
        self._fd, write_end = _pipe()
        try:
            self._pid = _spawn(argv, write_end, own_group)
        except (OSError, ValueError) as error:
            os.close(self._fd)
            raise _cannot_run(argv[0], error) from None
        finally:
            os.close(write_end)
        self._group = -self._pid if own_group else self._pid
        self._status: int | None = None
        self._term_at = None if timeout is None else time.monotonic() + timeout
        self._kill_at: float | None = None
        self._ended = 0.0
        self.timed_out = False
        self.duration = 0.0  # seconds

    @property
    def exit_code(self) -> int:
        """The exit status as a shell has it: 128 + n for signal n."""
        code = os.waitstatus_to_exitcode(self._status or 0)
        return code if code >= 0 else 128 - code

    @property
    def signal(self) -> int | None:
        """The signal that ended the command."""
        code = os.waitstatus_to_exitcode(self._status or 0)
        return -code if code < 0 else None

    def output(self, interrupts: Interrupts) -> Iterator[bytes]:
        """Yield the output until the command has ended and its output, too.

        A signal to us is passed on. Processes that the command left behind may hold the pipe open: they are listened
        to until they are quiet, and no longer than DRAIN seconds.
        """
        began = last_output = time.monotonic()
        handled, open_end = 0, True
        while True:
            now = time.monotonic()
            ready = interrupts.wait(self._fd if open_end else None, self._patience(now, last_output))
            now = time.monotonic()
            while handled < interrupts.count:
                handled += 1
                self._pass_on(interrupts.caught, now, again=handled > 1)
            if ready:
                data = os.read(self._fd, process.READ_SIZE)
                open_end, last_output = bool(data), now
                if data:
                    yield data
            self._enforce_limits(now)
            if self._status is None and self._reap():
                self._ended, self.duration = now, now - began
            if self._status is not None and (not open_end or self._drained(now, last_output)) and self._group_gone(now):
                break
        os.close(self._fd)

    def _patience(self, now: float, last_output: float) -> float | None:
        """Return how long to wait for output before something else must be looked at."""
        if self._status is not None:
            return max(0.0, min(QUIET, max(last_output, self._ended) + QUIET - now))
        deadlines = [at for at in (self._term_at, self._kill_at) if at is not None]
        return max(0.0, min(deadlines) - now) if deadlines else None

    def _drained(self, now: float, last_output: float) -> bool:
        return now - max(last_output, self._ended) >= QUIET or now - self._ended >= DRAIN

    def _group_gone(self, now: float) -> bool:
        """After a time-out, wait for the whole group; it is killed when its grace is over."""
        if not self.timed_out or not self._send(0):
            return True
        return self._kill_at is None

    def _enforce_limits(self, now: float) -> None:
        if self._kill_at is not None and now >= self._kill_at:
            self._send(signal.SIGKILL)
            self._kill_at = None
        if self._term_at is not None and now >= self._term_at and self._status is None:
            self.timed_out = True
            self._end(signal.SIGTERM, now)

    def _pass_on(self, number: int, now: float, *, again: bool) -> None:
        """Send a signal of ours to the command. One that does not end on TERM, or is interrupted twice, is killed."""
        if again:
            self._send(signal.SIGKILL)
        elif number == signal.SIGINT:
            if self._group < 0:  # at a terminal the keyboard has told the command already
                self._send(number)
        else:
            self._end(number, now)

    def _end(self, number: int, now: float) -> None:
        self._send(number)
        self._send(signal.SIGCONT)  # a stopped process cannot end
        self._term_at = None
        self._kill_at = now + GRACE

    def _send(self, number: int) -> bool:
        """Send a signal to the command, or its group; False if nobody is there any more."""
        try:
            os.kill(self._group, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _reap(self) -> bool:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._status = status
        return bool(pid)


def _pipe() -> tuple[int, int]:
    """Return a pipe above the standard descriptors, even where one of those is closed."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


def _spawn(argv: list[str], output: int, own_group: bool) -> int:
    """Start argv with its output on a descriptor; a script without `#!` is given to sh, as execvp does."""
    for words in (argv, ["/bin/sh", *argv]):
        try:
            return os.posix_spawnp(
                words[0],
                words,
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)],
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them; the command must not
                setpgroup=0 if own_group else os.getpgrp(),
            )
        except OSError as error:
            if error.errno != errno.ENOEXEC or words is not argv:
                raise
    raise AssertionError("the second attempt returned or raised")


def _cannot_run(name: str, error: OSError | ValueError) -> CommandError:
    if isinstance(error, OSError):
        code = 127 if error.errno == errno.ENOENT else 126
        return CommandError(f"{name}: {process.reason(error)}", code)
    return CommandError(f"{name!r}: {error}", 126)
