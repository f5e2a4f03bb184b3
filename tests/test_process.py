"""Signals, pipes and descriptors, with real processes: what is held is printed, and nothing blocks for ever."""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time

import pytest
from shell import User, eventually, finish, linux_only, read_until

from ctxkit import process
from ctxkit.errors import UsageError

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
every_signal = pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)


def wait_until_read(fd: int) -> None:
    """Wait until the reader has taken all that is in a pipe, seen from its write end."""
    eventually(lambda: _unread(fd) == 0)


def _unread(fd: int) -> int:
    left = bytearray(4)
    fcntl.ioctl(fd, termios.FIONREAD, left)
    return int.from_bytes(left, sys.byteorder)


# -- signals while input is awaited ----------------------------------------------------------------------------------


@every_signal
@pytest.mark.parametrize("keep", ["--tail", "--head", "--middle"])
def test_t18_a_signal_prints_what_is_held(user: User, number: signal.Signals, keep: str) -> None:
    """The producer hangs; the job is ended; what there was is not lost."""
    running = user.start_ctx("truncate", keep, stdin=subprocess.PIPE)
    assert running.stdin is not None
    running.stdin.write(b"ready\n")
    running.stdin.flush()
    wait_until_read(running.stdin.fileno())
    running.send_signal(number)
    done = finish(running)
    assert done == (b"ready\n\n[Input not finished]\n", b"", -number)
    assert user.spills == []


def test_t18_sigterm_prints_what_is_held_of_a_cut_input(user: User) -> None:
    running = user.start_ctx("truncate", "-n", "2", stdin=subprocess.PIPE)
    assert running.stdin is not None
    running.stdin.write(b"1\n2\n3\n4\nhalf a li")
    running.stdin.flush()
    spill = eventually(lambda: user.spills)[0]
    eventually(lambda: spill.read_bytes() == b"1\n2\n3\n4\nhalf a li")  # it can be read meanwhile
    running.stdin.write(b"ne")
    running.stdin.flush()
    eventually(lambda: spill.read_bytes() == b"1\n2\n3\n4\nhalf a line")
    running.send_signal(signal.SIGTERM)
    done = finish(running)
    expected = f"4\nhalf a line\n\n[Showing lines 4-5 of 5. Full output: {spill}. Input not finished]\n"
    assert done == (expected.encode(), b"", -signal.SIGTERM)
    assert user.spills == [spill]


def test_t18_the_status_in_a_shell_is_143(user: User) -> None:
    script = """
        mkfifo fifo
        exec 3<> fifo  # a producer that hangs
        ctx truncate -n 1 --spill saved < fifo > out & job=$!
        printf 'not\nready\n' >&3
        until [ -s saved ]; do sleep 0.01; done
        kill -TERM $job; wait $job; echo "status $?"; head -n 1 out
    """
    assert user.sh(script).out == b"status 143\nready\n"


def test_a_signal_with_json_prints_the_object(user: User) -> None:
    running = user.start_ctx("truncate", "--json", stdin=subprocess.PIPE)
    assert running.stdin is not None
    running.stdin.write(b"ready\n")
    running.stdin.flush()
    wait_until_read(running.stdin.fileno())
    running.terminate()
    done = finish(running)
    assert b'"content": "ready\\n"' in done.out
    assert b'"notice": "[Input not finished]"' in done.out
    assert done.out.endswith(b"}\n")
    assert done.code == -signal.SIGTERM


def test_a_signal_ends_the_whole_list_of_files(user: User) -> None:
    os.mkfifo(user.work / "fifo")
    user.file("after", b"after\n")
    running = user.start_ctx("truncate", "fifo", "after")
    with open(user.work / "fifo", "wb") as producer:
        producer.write(b"ready\n")
        producer.flush()
        wait_until_read(producer.fileno())
        running.terminate()
        done = finish(running)
    assert done == (b"==> fifo <==\nready\n\n[Input not finished]\n", b"", -signal.SIGTERM)


def test_ignored_signals_stay_ignored(user: User) -> None:
    """As with nohup: the hangup of a terminal ends nothing."""
    script = """
        trap '' HUP INT
        mkfifo fifo
        ctx truncate --head < fifo > out & job=$!
        exec 3> fifo
        echo one >&3
        until [ -s out ]; do sleep 0.01; done
        kill -HUP $job; kill -INT $job
        echo two >&3
        exec 3>&-
        wait $job; echo "status $?"; cat out
    """
    assert user.sh(script).out == b"status 0\none\ntwo\n"


def test_a_signal_before_anything_came(user: User) -> None:
    running = user.start_ctx("truncate", stdin=subprocess.PIPE, env={"PYTHONUNBUFFERED": "1"})
    time.sleep(0.3)  # nothing can be seen from outside; were it too short, the default would end it silently
    running.terminate()
    done = finish(running)
    assert done.out in (b"[Input not finished]\n", b"")
    assert (done.err, done.code) == (b"", -signal.SIGTERM)


# -- signals while output is stuck -----------------------------------------------------------------------------------


def is_stuck(running: subprocess.Popen[bytes], write_end: int) -> bool:
    """Say whether a process has filled a pipe that nobody reads."""
    return running.poll() is None and not select.select([], [write_end], [], 0)[1]


def signal_until_it_ends(running: subprocess.Popen[bytes], number: int) -> None:
    """Send signals to a process that may still be about to write, where the first one only makes it hurry."""

    def ended() -> bool:
        running.send_signal(number)
        time.sleep(0.05)
        return running.poll() is not None

    eventually(ended)


@every_signal
@pytest.mark.parametrize("keep", ["--tail", "--head", "--middle"])
def test_a_signal_ends_a_process_whose_reader_is_stuck(user: User, number: signal.Signals, keep: str) -> None:
    line = b"x" * 99 + b"\n"
    user.file("text", line * 5000)
    read_end, write_end = os.pipe()
    running = user.start_ctx("truncate", keep, "-c", "400K", "-n", "none", "text", stdout=write_end)
    eventually(lambda: is_stuck(running, write_end))
    if keep == "--tail":  # one write, so it is in the middle of that
        running.send_signal(number)
    else:
        signal_until_it_ends(running, number)
    assert finish(running) == (b"", b"", -number)
    os.close(write_end)
    os.close(read_end)


def test_a_signal_ends_a_process_stuck_on_a_non_blocking_pipe(user: User) -> None:
    user.file("text", b"x" * 500_000)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    running = user.start_ctx("truncate", "-c", "none", "text", stdout=write_end)
    eventually(lambda: is_stuck(running, write_end))
    running.terminate()
    assert finish(running) == (b"", b"", -signal.SIGTERM)
    os.close(write_end)
    os.close(read_end)


def test_a_signal_ends_a_process_whose_errors_are_stuck(user: User) -> None:
    """A notice on a standard error that nobody reads."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        while True:
            os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write_end, True)
    running = user.start_ctx("truncate", "-n", "1", "--notice", "stderr", stdin=subprocess.PIPE, stderr=write_end)
    assert running.stdin is not None and running.stdout is not None
    running.stdin.write(b"1\n2\n")
    running.stdin.close()
    running.stdin = None
    read_until(running.stdout.fileno(), b"2\n")
    signal_until_it_ends(running, signal.SIGTERM)
    assert finish(running).code == -signal.SIGTERM
    os.close(write_end)
    os.close(read_end)


def test_what_was_cut_is_kept_when_a_stuck_process_is_ended(user: User) -> None:
    data = b"".join(b"%d\n" % number for number in range(100_000))
    read_end, write_end = os.pipe()
    running = user.start_ctx("truncate", "-c", "400K", "-n", "none", stdin=subprocess.PIPE, stdout=write_end)
    assert running.stdin is not None
    running.stdin.write(data)
    running.stdin.close()
    running.stdin = None
    eventually(lambda: is_stuck(running, write_end))
    running.terminate()
    assert finish(running).code == -signal.SIGTERM
    assert user.spill.read_bytes() == data
    os.close(write_end)
    os.close(read_end)


# -- pipes -----------------------------------------------------------------------------------------------------------


def test_head_prints_as_it_reads(user: User) -> None:
    running = user.start_ctx("truncate", "--head", stdin=subprocess.PIPE)
    assert running.stdin is not None and running.stdout is not None
    for line in (b"one\n", b"two\n"):
        running.stdin.write(line)
        running.stdin.flush()
        assert read_until(running.stdout.fileno(), line) == line
    assert finish(running).code == 0


def test_a_reader_that_leaves_while_the_producer_hangs(user: User) -> None:
    """Nobody will ever see the result: the process need not wait for input that may never come."""
    running = user.start_ctx("truncate", stdin=subprocess.PIPE)
    assert running.stdin is not None and running.stdout is not None
    running.stdin.write(b"ready\n")
    running.stdin.flush()
    wait_until_read(running.stdin.fileno())
    running.stdout.close()
    running.stdout = None
    assert running.wait(30) == -signal.SIGPIPE
    assert user.spills == []


def test_a_reader_behind_a_socket_that_leaves(user: User) -> None:
    """Some programs read their children through socket pairs."""
    ours, theirs = socket.socketpair()
    running = user.start_ctx("truncate", stdin=subprocess.PIPE, stdout=theirs.fileno())
    theirs.close()
    assert running.stdin is not None
    running.stdin.write(b"ready\n")
    running.stdin.flush()
    wait_until_read(running.stdin.fileno())
    ours.close()
    assert running.wait(30) == -signal.SIGPIPE


def test_a_reader_behind_a_socket_gets_it_all(user: User) -> None:
    ours, theirs = socket.socketpair()
    ours.shutdown(socket.SHUT_WR)  # it has nothing to say, but listens
    running = user.start_ctx("truncate", "-c", "none", stdin=subprocess.PIPE, stdout=theirs.fileno())
    theirs.close()
    assert running.stdin is not None
    running.stdin.write(b"x" * 300_000)
    running.stdin.close()
    running.stdin = None
    with ours, ours.makefile("rb") as reader:
        assert reader.read() == b"x" * 300_000
    assert finish(running).code == 0


def test_t19_the_producer_keeps_its_status(user: User) -> None:
    script = "set -o pipefail; (seq 200000; exit 3) | ctx truncate --head -n 1 --notice none; echo $?"
    assert user.sh(script) == (b"1\n3\n", b"", 0)
    script = "set -o pipefail; (seq 200000; exit 3) | ctx truncate --tail -n 1 --notice none; echo $?"
    assert user.sh(script) == (b"200000\n3\n", b"", 0)


def test_t19_early_exit_ends_an_endless_producer(user: User) -> None:
    done = user.sh('yes | ctx truncate --head --early-exit -n 2; echo "${PIPESTATUS[@]}"')
    assert done.out.startswith(b"y\ny\n\n[Showing lines 1-2 of more than 2")
    assert b"Input not finished]\n" in done.out
    assert done.out.endswith(b"\n141 0\n")
    assert user.spills == []


@linux_only
def test_no_descriptor_is_taken_for_a_standard_one(user: User) -> None:
    """With all three closed, what is opened gets their numbers; nothing may be written into it."""
    source = user.file("text", b"1\n2\n3\n")
    done = user.sh("ctx truncate -n 1 text --spill saved <&- >&- 2>&-")
    assert done == (b"", b"", 1)
    assert source.read_bytes() == b"1\n2\n3\n"
    assert (user.work / "saved").read_bytes() == b"1\n2\n3\n"


def test_more_descriptors_than_select_can_hold(user: User) -> None:
    """A parent that leaks descriptors: ours get numbers above 1024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip("so many cannot be opened here")
    leak = "import os, resource, sys\n"
    leak += f"resource.setrlimit(resource.RLIMIT_NOFILE, (1200, {hard}))\n"
    leak += "[os.set_inheritable(os.open('/dev/null', 0), True) for _ in range(1100)]\n"
    leak += "os.execv(sys.executable, [sys.executable, '-m', 'ctxkit', *sys.argv[1:]])"
    done = user.run(sys.executable, "-c", leak, "truncate", "-n", "1", "--spill", "never", input=b"1\n2\n")
    assert done == (b"2\n\n[Showing lines 2-2 of 2. Full output not saved]\n", b"", 0)
    done = user.run(sys.executable, "-c", leak, "run", "echo", "hi")
    assert done == (b"hi\n", b"", 0)


# -- as a module -----------------------------------------------------------------------------------------------------


def test_signals_are_left_alone_outside_the_main_thread() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with process.Interrupts() as interrupts:
                assert interrupts.wait(None, 0.01) is False
        except BaseException as error:
            failures.append(error)

    before = [signal.getsignal(number) for number in SIGNALS]
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failures == []
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with process.Interrupts():
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/me"}, "/state/ctxkit"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.local/state/ctxkit"),
        ({"XDG_STATE_HOME": "", "HOME": "/home/me"}, "/home/me/.local/state/ctxkit"),
        ({"HOME": "relative"}, None),
    ],
)
def test_state_home(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], expected: str | None) -> None:
    for name in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
        if name in environ:
            monkeypatch.setenv(name, environ[name])
    if expected is None:
        with pytest.raises(FileNotFoundError):
            process.state_home()
    else:
        assert process.state_home() == expected


def test_what_is_said_stays_on_its_line(capfd: pytest.CaptureFixture[str]) -> None:
    process.begin("ctx")
    process.report(UsageError("a\nb\x1b[31m 'c' \\ \udce9 \u2028", "d\te"))
    process.warn("f\rg")
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "ctx: a\\nb\\x1b[31m 'c' \\ \\xe9 \\xe2\\x80\\xa8\nhint: d\\te\nctx: warning: f\\rg\n"


def test_a_time_and_ids_are_those_of_sessions() -> None:
    assert process.timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert process.timestamp(1_764_547_200_007) == "2025-12-01T00:00:00.007Z"
    taken = {f"{number:08x}" for number in range(10)}
    made = process.new_entry_id(taken)
    assert len(made) == 8 and int(made, 16) >= 0 and made not in taken
    first, second = process.new_session_id(), process.new_session_id()
    assert first != second
    assert (len(first), first[14], first[19] in "89ab") == (36, "7", True)
    assert abs(int(first.replace("-", "")[:12], 16) - process.now()) < 60_000
