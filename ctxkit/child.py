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
LOOK = 0.05  # seconds between two looks at whether a process group is still there


class Child:
    """A running command: read `output` to its end, then look at `exit_code`, `signal` and `timed_out`.

    The command has its own process group, which is ended as a whole. Only at a terminal, and without a time limit, it
    shares ours, so that the keyboard's signals reach it and it may read the keyboard.
    """

    __slots__ = (
        "_began",
        "_ended",
        "_fd",
        "_group",
        "_handled",
        "_kill_at",
        "_killed_at",
        "_last_output",
        "_pid",
        "_status",
        "_term_at",
        "duration",
        "timed_out",
    )

    def __init__(self, argv: list[str], *, timeout: float | None = None) -> None:
        """Start argv. Raises CommandError: exit 127 if there is no such command, 126 if it cannot be run (env(1))."""
        own_group = timeout is not None or not process.stdin_is_terminal()
        self._fd, write_end = _pipe()  # -1 after the end of the output
        try:
            self._pid = _spawn(argv, write_end, own_group)
        except (OSError, ValueError) as error:
            os.close(self._fd)
            raise _cannot_run(argv[0], error) from None
        finally:
            os.close(write_end)
        self._group = -self._pid if own_group else self._pid
        self._status: int | None = None
        self._began = self._last_output = time.monotonic()
        self._ended = 0.0
        self._term_at = None if timeout is None else self._began + timeout
        self._kill_at: float | None = None
        self._killed_at: float | None = None
        self._handled = 0  # signals to us
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
        self._reap(time.monotonic())  # whoever stopped listening may have missed the signal that tells
        while not self._over():
            ready = interrupts.wait(self._fd if self._fd >= 0 else None, self._patience())
            now = time.monotonic()
            while self._handled < interrupts.count:
                self._handled += 1
                self._pass_on(interrupts.caught, now)
            if ready:
                data = os.read(self._fd, process.READ_SIZE)
                self._last_output = now
                if data:
                    yield data
                else:
                    self._close()
            self._enforce_limits(now)
            self._reap(now)
        self._close()

    def stop_listening(self, interrupts: Interrupts) -> None:
        """Let the command feel that nobody reads its output, as in a pipe, and wait until it has ended."""
        self._close()
        interrupts.reader = -1
        for _ in self.output(interrupts):
            pass

    def send(self, number: int) -> bool:
        """Send a signal to the command, or its group; False if nobody is there any more."""
        try:
            os.kill(self._group, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _over(self) -> bool:
        """Say whether the command has ended, and what is left of it is quiet or has been heard for long enough."""
        if self._status is None:
            return False
        now = time.monotonic()
        quiet = now - max(self._last_output, self._ended) >= QUIET or now - self._ended >= DRAIN
        return (self._fd < 0 or quiet) and self._group_gone()

    def _group_gone(self) -> bool:
        """After a time-out, wait for the whole group; of what was killed, no longer than it takes to die."""
        if not self.timed_out or not self.send(0) or not _lives(self._pid):
            return True
        return self._killed_at is not None and time.monotonic() - self._killed_at >= QUIET

    def _patience(self) -> float | None:
        """Return how long to wait for output before something else must be looked at."""
        now = time.monotonic()
        if self._status is not None:
            if self.timed_out:
                return LOOK  # nothing tells that the last process of a group has ended
            return max(0.0, max(self._last_output, self._ended) + QUIET - now)
        deadlines = [at for at in (self._term_at, self._kill_at) if at is not None]
        return max(0.0, min(deadlines) - now) if deadlines else None

    def _enforce_limits(self, now: float) -> None:
        if self._kill_at is not None and now >= self._kill_at:
            self.send(signal.SIGKILL)
            self._kill_at, self._killed_at = None, now
        if self._term_at is not None and now >= self._term_at and self._status is None:
            self.timed_out = True
            self._end(signal.SIGTERM, now)

    def _pass_on(self, number: int, now: float) -> None:
        """Send a signal of ours to the command. One that does not end on TERM or HUP is killed."""
        if number == signal.SIGINT:
            if self._group < 0:  # at a terminal the keyboard has told the command already
                self.send(number)
        elif self._kill_at is not None:
            self.send(signal.SIGKILL)
        else:
            self._end(number, now)

    def _end(self, number: int, now: float) -> None:
        self.send(number)
        self.send(signal.SIGCONT)  # a stopped process cannot end
        self._term_at = None
        self._kill_at = now + GRACE

    def _reap(self, now: float) -> None:
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._status, self._ended, self.duration = status, now, now - self._began

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _lives(group: int) -> bool:
    """Say whether a process group that can be signalled has a member that is no zombie, as far as /proc tells.

    In a container often nobody takes up the zombies that a command leaves.
    """
    try:
        numbers = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return True
    for number in numbers:
        try:
            with open(f"/proc/{number}/stat", "rb") as file:
                state, _, of = file.read().rpartition(b") ")[2].split(b" ", 3)[:3]
        except OSError:  # it has just ended
            continue
        if int(of) == group and state not in (b"Z", b"X"):
            return True
    return not numbers


def _pipe() -> tuple[int, int]:
    """Return a pipe above the standard descriptors, even where one of those is closed."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


def _spawn(argv: list[str], output: int, own_group: bool) -> int:
    """Start argv with its output on a descriptor; a script without `#!` is given to sh, as execvp does."""
    if not argv[0]:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    try:
        return _spawn_exactly(argv, output, own_group)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    return _spawn_exactly(["/bin/sh", _found(argv[0]), *argv[1:]], output, own_group)


def _spawn_exactly(argv: list[str], output: int, own_group: bool) -> int:
    return os.posix_spawnp(
        argv[0],
        argv,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)],
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them; the command must not
        setpgroup=0 if own_group else os.getpgrp(),
    )


def _found(name: str) -> str:
    """Return where a command is: in a folder of PATH, if it names none."""
    if "/" in name:
        return name
    paths = [os.path.join(folder or ".", name) for folder in os.get_exec_path()]
    return next((path for path in paths if os.access(path, os.X_OK) and not os.path.isdir(path)), f"./{name}")


def _cannot_run(name: str, error: OSError | ValueError) -> CommandError:
    what = process.shown(name) if name else "''"
    if isinstance(error, OSError):
        code = 127 if error.errno == errno.ENOENT else 126
        return CommandError(f"{what}: {process.reason(error)}", code)
    return CommandError(f"{what}: {error}", 126)
