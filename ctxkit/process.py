"""The process itself: standard streams, operands, what is said on standard error, signals, environment, clock, ids.

With `files`, `spill` and `child` this is the edge: the only modules that touch the outside world (DESIGN rule 2). It
is imported at every start, so it imports only what the interpreter has loaded anyway or loads at once; `_signal` is
used because `signal` pulls in `enum`, which alone costs a third of the start of Python.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
import time

from ctxkit.errors import CtxError, InputError, OutputError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Container, Generator, Iterator
    from types import FrameType, TracebackType
    from typing import Any
else:
    import _signal as signal

READ_SIZE = 1 << 16  # a pipe's capacity: larger reads are slower, they allocate what they do not fill
PART = 8  # bytes read before the wanted end of a file, so that a character is not mistaken where it is cut
TICK = 0.5  # seconds between two looks at whether output is stuck, after a signal
DESCRIPTORS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")  # names that mean something to one process only
ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "'": "\\'", "\\": "\\\\"}

_program = "ctx"
_quiet = False
_writing = False  # output is being written, which may be stuck
_steps = 0  # how often something was written; this tells progress from standstill


# -- talk ------------------------------------------------------------------------------------------------------------


def begin(program: str, *, quiet: bool = False) -> None:
    """Set the name that errors and warnings begin with, and whether warnings are printed."""
    global _program, _quiet
    _program, _quiet = program, quiet


def report(error: CtxError) -> None:
    """Print an error, and its hint if it has one, on standard error."""
    say(f"{_program}: {_one_line(error.message)}")
    if error.hint:
        say(f"hint: {_one_line(error.hint)}")


def warn(message: str) -> None:
    """Print a warning on standard error, unless `--quiet` was given."""
    if not _quiet:
        say(f"{_program}: warning: {_one_line(message)}")


def shown(name: str) -> str:
    """Write a file name on one line: one with control characters or bytes that are no text is quoted for a shell."""
    return name if name.isprintable() else f"$'{''.join(_escape(character) for character in name)}'"


def _one_line(message: str) -> str:
    if message.isprintable():
        return message
    return "".join(character if character.isprintable() else _escape(character) for character in message)


def _escape(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    if character.isprintable():
        return character
    raw = character.encode("utf-8", "surrogateescape" if "\udc80" <= character <= "\udcff" else "replace")
    return "".join(f"\\x{byte:02x}" for byte in raw)


def reason(error: OSError) -> str:
    """Return what the system says about an error, without numbers and names."""
    return error.strerror or str(error)


def say(message: str) -> None:
    """Print a line on standard error; a standard error that is closed is nobody's problem."""
    write_error(message.encode("utf-8", "replace") + b"\n")


def write_error(data: bytes) -> None:
    """Write bytes to standard error, if there is one."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
            _write_stream(sys.stderr, data)
    except (OSError, ValueError):
        pass


# -- standard streams and files --------------------------------------------------------------------------------------


class Source:
    """An input that was opened: its name, and its bytes in chunks."""

    __slots__ = ("fd", "is_stdin", "name", "path", "regular", "size")

    def __init__(self, name: str, fd: int, path: str | None) -> None:
        self.name = name
        self.fd = fd
        self.is_stdin = path is None
        status = os.fstat(fd) if fd >= 0 else None
        self.regular = status is not None and stat.S_ISREG(status.st_mode)
        self.size = status.st_size if status is not None else 0
        lasting = self.regular and path is not None and not path.startswith(DESCRIPTORS)
        self.path = path if lasting else None  # where the whole input can be read again

    @property
    def shown(self) -> str:
        """The name on one line."""
        return shown(self.name)

    def chunks(self, interrupts: Interrupts | None = None) -> Iterator[bytes]:
        """Yield the bytes up to the end of the input, or up to a signal that `interrupts` caught."""
        if self.fd < 0:
            yield from _buffered_stdin()
            return
        while True:
            if interrupts is not None:
                while not interrupts.caught and not self.regular and not interrupts.wait(self.fd):
                    pass
                if interrupts.caught:
                    return
            try:
                data = os.read(self.fd, READ_SIZE)
            except BlockingIOError:  # somebody made the pipe non-blocking
                if interrupts is None:
                    _wait_for(self.fd, select.POLLIN)
                continue
            except OSError as error:
                raise InputError(reason(error), source=self.shown) from None
            if not data:
                return
            yield data

    def skip_to_last(self, size: int) -> None:
        """Go to the last `size` bytes, and a few more, of a regular file that has more; never back."""
        if self.regular and self.size > size + PART:
            here = os.lseek(self.fd, 0, os.SEEK_CUR)
            os.lseek(self.fd, max(here, self.size - size - PART), os.SEEK_SET)

    def same_as(self, path: str) -> bool:
        """Say whether a name leads to this very file."""
        try:
            return self.regular and os.path.samestat(os.fstat(self.fd), os.stat(path))
        except OSError:
            return False

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if not self.is_stdin:
            os.close(self.fd)


def open_source(name: str) -> Source:
    """Open a file for reading; `-` is standard input. Raises InputError."""
    if name == "-":
        if sys.stdin is None:
            raise InputError("closed", source="standard input")
        try:
            return Source("standard input", sys.stdin.fileno(), None)
        except (OSError, ValueError):  # replaced by a caller inside Python
            return Source("standard input", -1, None)
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(reason(error), source=shown(name)) from None
    except ValueError:
        raise InputError("not a file name", source=shown(name)) from None
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        raise InputError(os.strerror(errno.EISDIR), source=shown(name))
    return Source(name, fd, name)


def read_text(name: str) -> str:
    """Return the whole of a file, `-` is standard input, as text; bytes that are no UTF-8 become U+FFFD."""
    source = open_source(name)
    try:
        return b"".join(source.chunks()).decode("utf-8", "replace")
    finally:
        source.close()


def operands(files: list[str] | None) -> list[str]:
    """Return the inputs to read: the files named, or standard input if that is no terminal.

    Raises UsageError: a filter that waits for a keyboard looks as if it hung.
    """
    if files:
        if files.count("-") > 1:
            raise UsageError("standard input was named twice")
        return files
    if stdin_is_terminal():
        raise UsageError("no input", f"name a FILE, or pipe something in; see '{_program} --help'")
    return ["-"]


def each(
    files: list[str], work: Callable[[Source], Generator[dict[str, Any], None, int]]
) -> Generator[dict[str, Any], None, int]:
    """Do the work for every file and yield what it yields; report the files that fail, and go on.

    Returns the worst exit code.
    """
    worst = 0
    for name in files:
        try:
            source = open_source(name)
            try:
                code = yield from work(source)
                worst = max(worst, code)
            finally:
                source.close()
        except InputError as error:
            report(error)
            worst = max(worst, error.exit_code)
    return worst


def write(data: bytes) -> None:
    """Write to standard output at once. Raises OutputError; BrokenPipeError passes through."""
    if not data:
        return
    if sys.stdout is None:
        raise OutputError("standard output is closed")
    try:
        _write_stream(sys.stdout, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"write error: {reason(error)}") from None


def stdin_is_terminal() -> bool:
    """Say whether standard input is a person's keyboard."""
    return sys.stdin is not None and _is_terminal(sys.stdin)


def stdout_is_terminal() -> bool:
    """Say whether a person reads standard output."""
    return sys.stdout is not None and _is_terminal(sys.stdout)


def terminal_width() -> int:
    """Return the columns of the terminal that standard output is; 80 where it is none."""
    if not stdout_is_terminal():
        return 80
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80


def _is_terminal(stream: object) -> bool:
    try:
        return os.isatty(stream.fileno())  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError):
        return False


def _write_stream(stream: object, data: bytes) -> None:
    try:
        fd = stream.fileno()  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError):  # replaced by a caller inside Python
        stream.buffer.write(data)  # type: ignore[attr-defined]
        return
    write_all(fd, data, end_on_signal=True)


def write_all(fd: int, data: bytes | bytearray, *, end_on_signal: bool = False) -> None:
    """Write all of data to a descriptor, waiting where it is not ready (a non-blocking pipe).

    With `end_on_signal` it is given up, as Killed, if it is stuck after a signal that Interrupts caught: whoever should
    take the data may never do so.
    """
    global _steps, _writing
    view = memoryview(data)
    try:
        _writing = end_on_signal
        while view:
            _steps += 1
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                _wait_for(fd, select.POLLOUT)
    finally:
        _writing = False


def _wait_for(fd: int, event: int) -> None:
    poller = select.poll()
    poller.register(fd, event)
    poller.poll()


def _buffered_stdin() -> Iterator[bytes]:
    while data := sys.stdin.buffer.read(READ_SIZE):
        yield data


# -- signals ---------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """After a signal the output is stuck; `__main__` ends the process by that signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interrupts:
    """Catch SIGINT, SIGTERM and SIGHUP while input is read, so that what is held can still be printed.

    A signal is noticed where `wait` waits and never in the middle of a step, so nothing is lost. From then on a clock
    ticks: where output makes no progress from one tick to the next, Killed is raised.
    """

    __slots__ = ("_before", "_children", "_seen", "_wake_read", "_wake_write", "caught", "count", "reader")

    def __init__(self, *, children: bool = False, reader: bool = False) -> None:
        self.caught = 0  # the last signal
        self.count = 0  # how many came
        self._children = children  # let the end of a child process end a wait, too
        self.reader = _stdout_pipe() if reader else -1  # let the end of who reads our output end a wait, too
        self._before: dict[int, Any] = {}
        self._seen = 0  # steps at the last tick

    def __enter__(self) -> Interrupts:
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        try:
            signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) != signal.SIG_IGN:  # nohup, or a shell's background job
                    self._before[number] = signal.signal(number, self._catch)
            self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._tick)
            if self._children:
                self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        except ValueError:  # not the main thread: signals are the caller's business
            pass
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.caught:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._before:
            signal.set_wakeup_fd(-1)
        os.close(self._wake_read)
        os.close(self._wake_write)

    def wait(self, fd: int | None, timeout: float | None = None) -> bool:
        """Wait until fd can be read; False if a signal came first, or `timeout` seconds went by.

        Raises BrokenPipeError if nobody reads standard output any more and that was asked for: a producer that
        never ends would keep us for ever.
        """
        poller = select.poll()
        poller.register(self._wake_read, select.POLLIN)
        if fd is not None:
            poller.register(fd, select.POLLIN)
        if self.reader >= 0:
            poller.register(self.reader, 0)
        ready = dict(poller.poll(None if timeout is None else int(timeout * 1000) + 1))
        if self._wake_read in ready:
            os.read(self._wake_read, 512)
        if ready.get(self.reader, 0) & (select.POLLERR | select.POLLHUP):
            raise BrokenPipeError
        return fd is not None and fd in ready

    def _catch(self, number: int, frame: FrameType | None) -> None:
        if not self.caught:
            signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
        self.caught = number
        self.count += 1

    def _tick(self, number: int, frame: FrameType | None) -> None:
        """Give up writing that is where it was at the last tick; what a tick interrupts goes on, if it can."""
        if _writing and _steps == self._seen:
            raise Killed(self.caught)
        self._seen = _steps


def _stdout_pipe() -> int:
    """Return the descriptor of standard output if it is a pipe or a socket, else -1."""
    try:
        fd = sys.stdout.fileno()
        mode = os.fstat(fd).st_mode
    except (OSError, ValueError, AttributeError):
        return -1
    return fd if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else -1


def die(number: int) -> None:
    """End this process by a signal, as if nothing had caught it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # not reached unless the signal is blocked


def absolute(path: str) -> str:
    """Return a path that does not depend on the working folder."""
    return os.path.abspath(path)


# -- environment -----------------------------------------------------------------------------------------------------


def state_home() -> str:
    """Return the folder for what outlives a run and may be lost: `$XDG_STATE_HOME/ctxkit`.

    Raises FileNotFoundError if there is neither that nor a home.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # the XDG rule: a relative path is invalid and ignored
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    if not os.path.isabs(base):
        raise FileNotFoundError(errno.ENOENT, "neither HOME nor XDG_STATE_HOME is set")
    return os.path.join(base, "ctxkit")


# -- clock and ids ---------------------------------------------------------------------------------------------------


def now() -> int:
    """Return the time in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def today() -> str:
    """Return the date here as YYYY-MM-DD; with SOURCE_DATE_EPOCH the date of that moment in UTC."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = time.gmtime(int(fixed)) if fixed.isascii() and fixed.isdecimal() else time.localtime()
    return time.strftime("%Y-%m-%d", moment)


def timestamp(milliseconds: int) -> str:
    """Write a time as sessions do: ISO 8601, UTC, with milliseconds."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:03d}Z"


def new_entry_id(taken: Container[str]) -> str:
    """Return an id of 8 hexadecimal digits that is not taken, as Pi makes them (Pi §1.3)."""
    while (made := os.urandom(4).hex()) in taken:
        pass
    return made


def new_session_id() -> str:
    """Return a UUID of version 7, which sorts by time (RFC 9562)."""
    raw = bytearray(now().to_bytes(6, "big") + os.urandom(10))
    raw[6] = raw[6] & 0x0F | 0x70
    raw[8] = raw[8] & 0x3F | 0x80
    digits = raw.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
