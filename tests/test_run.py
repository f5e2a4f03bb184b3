"""`ctx run`: the command keeps its status, its input and its terminal; all it printed is there, and nothing hangs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from shell import (
    PATIENCE,
    Terminal,
    User,
    eventually,
    finish,
    is_running,
    linux_only,
    needs_dev_full,
    not_as_root,
    read_until,
)

KEYS = {"command", "exitCode", "signal", "timedOut", "durationMs"}
NO_TERM = "trap '' TERM; "


def ran(user: User, *words: str, **settings: Any) -> dict[str, Any]:
    """Run a command with --json and return the object."""
    done = user.ctx("run", "--json", *words, **settings)
    assert done.err == b""
    found: dict[str, Any] = json.loads(done.out)
    return found


def start_ready(user: User, *words: str, **settings: Any) -> subprocess.Popen[bytes]:
    """Start ctx run with a command that prints `ready` with --live, and wait for that."""
    running = user.start_ctx("run", "--live", *words, **settings)
    assert running.stderr is not None
    read_until(running.stderr.fileno(), b"ready\n")
    return running


# A shell waits for a running command before it looks at a signal; and it talks about commands that a signal ended.
DEFAULT = """
import os, signal
signal.signal({number}, signal.SIG_DFL)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""
HANDLING = """
import os, signal
def handle(number, frame):
    os.write(1, b"{says}\\n")
    if {then} >= 0:
        os._exit({then})
signal.signal({number}, handle)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


def handling(number: signal.Signals, says: str, *, then: int = -1) -> list[str]:
    """Return a command that answers a signal with a word, and ends with a status or goes on."""
    return [sys.executable, "-c", HANDLING.format(number=number.value, says=says, then=then)]


def pid_in(path: Path) -> int:
    """Wait until a process has written its number into a file, and return it."""
    return int(eventually(lambda: path.exists() and path.read_bytes().endswith(b"\n") and path.read_bytes()))


# -- how it ended ----------------------------------------------------------------------------------------------------


def test_the_exit_status_is_the_commands(user: User) -> None:
    script = 'for status in $(seq 0 255); do ctx run -- sh -c "exit $status" > out; echo $?; tail -n 1 out; done'
    lines = user.sh(script).out.decode().split("\n")
    expected = ["0", "(no output)"]
    for status in range(1, 256):
        expected += [f"{status}", f"Command exited with code {status}"]
    assert lines == [*expected, ""]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGPIPE])
def test_a_command_that_is_killed(user: User, number: signal.Signals) -> None:
    done = user.ctx("run", "--", "sh", "-c", f"ulimit -c 0; echo hi; kill -{number.value} $$")
    code = 128 + number
    assert done == (f"hi\n\nCommand exited with code {code}\n".encode(), b"", code)
    found = ran(user, "--", "sh", "-c", f"ulimit -c 0; kill -{number.value} $$")
    assert (found["exitCode"], found["signal"]) == (code, number)


@pytest.mark.parametrize("name", ["no-such-command", "./nowhere", "a\nb", "", "caf\udce9"])
def test_there_is_no_such_command(user: User, name: str) -> None:
    expected = user.run("env", name or "''").code
    done = user.ctx("run", "--", name)
    assert (done.out, done.code) == (b"", 127)
    assert expected == 127
    assert done.err.startswith(b"ctx run: ")
    assert done.err.endswith(b": No such file or directory\n")
    assert done.err.count(b"\n") == 1


def test_it_cannot_be_run(user: User) -> None:
    user.file("text", b"no program\n")
    (user.work / "folder").mkdir()
    for name, reason in {
        "./text": b"Permission denied",
        "./folder": b"Permission denied",
        "text/x": b"Not a directory",
    }.items():
        done = user.ctx("run", "--", name)
        assert done == (b"", b"ctx run: %s: %s\n" % (name.encode(), reason), 126)
        assert user.run("env", name).code == 126


def test_its_interpreter_is_missing(user: User) -> None:
    user.file("script", b"#!/no/such/interpreter\n").chmod(0o755)
    assert user.ctx("run", "--", "./script").code == user.run("env", "./script").code == 127


def test_an_empty_run_is_a_usage_error(user: User) -> None:
    for words in ([], ["--"], ["-n", "5"]):
        done = user.ctx("run", *words)
        assert (done.out, done.code) == (b"", 2)
        assert done.err.startswith(b"ctx run: missing argument 'COMMAND [ARG]...'\nhint: ")


# -- what it is ------------------------------------------------------------------------------------------------------


def test_a_double_dash_is_not_needed(user: User) -> None:
    user.file("a", b"")
    assert user.ctx("run", "ls", "-a", "--", "a").out == b"a\n"
    assert user.ctx("run", "-n", "5", "ls", "-n1").out == user.sh("ls -n1").out
    assert user.ctx("run", "echo", "--json", "--help", "--", "-q").out == b"--json --help -- -q\n"


def test_its_arguments_arrive_as_they_are(user: User) -> None:
    words = ["a b", "", "*", "$HOME", "'", '"', "new\nline", "caf\udce9", "-n", "漢"]
    done = user.ctx("run", "--", "printf", "%s\\0", *words)
    assert done.out == b"".join(os.fsencode(word) + b"\0" for word in words)
    done = user.ctx("run", "--", "printf", "%s\\0", *words, env={"LC_ALL": "C"})
    assert done.out == b"".join(os.fsencode(word) + b"\0" for word in words)


def test_a_script_without_a_first_line_is_given_to_sh(user: User) -> None:
    user.file("script", b'echo "$0" "$@"\n').chmod(0o755)
    assert user.ctx("run", "--", "./script", "a b", "-x").out == b"./script a b -x\n"
    programs = user.home / "programs"
    programs.mkdir()
    (user.work / "script").rename(programs / "plain-script")
    path = f"{programs}:{user.environ['PATH']}"
    done = user.ctx("run", "--", "plain-script", "y", env={"PATH": path})
    assert done.out == f"{programs}/plain-script y\n".encode(), "found in PATH, not in the working folder"


def test_a_name_that_begins_with_a_dash(user: User) -> None:
    programs = user.home / "programs"
    programs.mkdir()
    for first, name in ((b"#!/bin/sh\n", "-with"), (b"", "-without")):
        (programs / name).write_bytes(first + b'echo "dash $1"\n')
        (programs / name).chmod(0o755)
        path = f"{programs}:{user.environ['PATH']}"
        assert user.ctx("run", "--", name, "-x", env={"PATH": path}).out == b"dash -x\n"


def test_a_shell_takes_a_line(user: User) -> None:
    assert user.ctx("run", "--shell", "seq 5 | sort -rn | head -n 2").out == b"5\n4\n"
    assert user.ctx("run", "--shell", "--", "echo", "a;", "echo", "$((1 + 1))").out == b"a\n2\n"
    done = user.ctx("run", "--shell", "exit 9")
    assert done.code == 9
    assert user.ctx("run", "--shell", "no-such-command").code == 127


def test_it_has_our_environment_and_folder(user: User) -> None:
    done = user.ctx("run", "--", "sh", "-c", 'pwd; echo "$A"', env={"A": "b c"})
    assert done.out == f"{user.work}\nb c\n".encode()


def test_it_has_our_input(user: User) -> None:
    assert user.ctx("run", "--", "cat", input=b"a\0b\xff").out == b"a\0b\xff"
    assert user.sh("seq 3 | ctx run -- head -n 1; seq 3 | ctx run -- sh -c 'read a; cat'").out == b"1\n2\n3\n"
    assert user.sh("ctx run -- cat < /dev/null").out == b"(no output)\n"


def test_its_input_is_closed_where_ours_is(user: User) -> None:
    done = user.sh("ctx run -- cat <&-")
    assert b"Bad file descriptor" in done.out
    assert done.code == 1


@linux_only
@pytest.mark.parametrize("closed", ["", "<&-", "2>&-", "<&- 2>&-"])
def test_no_descriptor_of_ours_is_open_in_it(user: User, closed: str) -> None:
    done = user.sh(f"ctx run -- sh -c 'cd /proc/self/fd && echo *' {closed}")
    assert done.out in (b"0 1 2\n", b"1 2\n", b"0 1 2 3\n", b"1 2 3\n"), "3 is the shell's own"
    script = (
        "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')))"
    )
    done = user.ctx("run", "--", sys.executable, "-c", script)
    assert done.out == b"[0, 1, 2]\n"


def test_descriptors_of_the_caller_are_passed_on(user: User) -> None:
    """As env(1) does: a make job server, for one, needs that."""
    assert user.sh("ctx run -- sh -c 'echo hi >&7; echo there' 7> seven; cat seven").out == b"there\nhi\n"


def test_a_pipe_inside_ends_as_it_does_outside(user: User) -> None:
    """Python ignores SIGPIPE; the command must not inherit that."""
    assert user.ctx("run", "--", "bash", "-c", 'yes | head -n 1; echo "${PIPESTATUS[0]}"').out == b"y\n141\n"


@linux_only
def test_signals_are_as_they_are_without_us(user: User) -> None:
    script = "for line in open('/proc/self/status'):\n    if line.startswith('Sig'): print(line.split()[1])"
    user.file("show.py", script.encode())
    ours = user.ctx("run", "--shell", f"exec {sys.executable} -S show.py").out.split()
    theirs = user.sh(f"exec {sys.executable} -S show.py").out.split()
    internal = 0b11 << 31  # of the C library, which starts programs with those two ignored
    assert [int(mask, 16) & ~internal for mask in ours[1:]] == [int(mask, 16) & ~internal for mask in theirs[1:]]


# -- what it printed -------------------------------------------------------------------------------------------------


def test_both_streams_come_in_order(user: User) -> None:
    script = "for i in $(seq 50); do echo out $i; echo err $i >&2; done"
    assert user.ctx("run", "--", "sh", "-c", script) == (user.sh(f"({script}) 2>&1").out, b"", 0)


def test_no_output_is_said(user: User) -> None:
    assert user.ctx("run", "true") == (b"(no output)\n", b"", 0)
    assert user.ctx("run", "false") == (b"(no output)\n\nCommand exited with code 1\n", b"", 1)
    assert ran(user, "true")["content"] == ""


def test_output_of_which_nothing_is_shown_is_not_no_output(user: User) -> None:
    assert user.ctx("run", "-n", "0", "--notice", "none", "echo", "hi") == (b"", b"", 0)
    done = user.ctx("run", "-n", "0", "--spill", "never", "sh", "-c", "echo hi; exit 3")
    assert done.out == b"[Showing none of 1 line. Full output not saved]\n\nCommand exited with code 3\n"


def test_no_newline_at_the_end(user: User) -> None:
    assert user.ctx("run", "printf", "hi") == (b"hi", b"", 0)
    assert user.ctx("run", "sh", "-c", "printf hi; exit 3").out == b"hi\n\nCommand exited with code 3\n"
    assert user.ctx("run", "sh", "-c", "echo hi; exit 3").out == b"hi\n\nCommand exited with code 3\n"


def test_it_is_cut_as_truncate_cuts(user: User) -> None:
    done = user.ctx("run", "sh", "-c", "seq 100000; exit 3")
    expected = user.sh("seq 100000 | ctx truncate").out
    ours, theirs = (re.sub(rb"ctx-[0-9a-f]{16}", b"ctx", out) for out in (done.out, expected))
    assert ours == theirs + b"\nCommand exited with code 3\n"
    full = b"".join(b"%d\n" % number for number in range(1, 100_001))
    assert [path.read_bytes() for path in user.spills] == [full, full]


def test_every_option_of_truncate_that_is_about_text(user: User) -> None:
    script = r"printf '\033[31mred\033[0m\n10%%\r20%%\nlonger\nlast\n'"
    assert user.ctx("run", "--strip-ansi", "--cr", "--shell", script).out == b"red\n20%\nlonger\nlast\n"
    alone = ["--notice", "none"]
    assert user.ctx("run", *alone, "--head", "-n", "1", "seq", "3").out == b"1\n"
    assert user.ctx("run", *alone, "--middle", "-n", "2", "seq", "4").out == b"1\n[... 2 lines (4B) left out ...]\n4\n"
    assert user.ctx("run", *alone, "-c", "4", "seq", "4").out == b"3\n4\n"
    assert user.ctx("run", *alone, "-w", "2", "echo", "abc").out == b"ab... [truncated]\n"
    assert user.ctx("run", *alone, "--offset", "3", "seq", "4").out == b"3\n4\n"
    assert user.ctx("run", "-n", "1", "--spill", "saved", "seq", "3").out.startswith(b"3\n\n[Showing lines 3-3 of 3. ")
    assert (user.work / "saved").read_bytes() == b"1\n2\n3\n"
    done = user.ctx("run", "-n", "1", "--notice", "stderr", "--spill", "never", "seq", "3")
    assert done == (b"3\n", b"[Showing lines 3-3 of 3. Full output not saved]\n", 0)


def test_live_copies_the_output_as_it_comes(user: User) -> None:
    running = user.start_ctx(
        "run", "--live", "-n", "1", "--", "sh", "-c", "echo one; read line; echo two", stdin=subprocess.PIPE
    )
    assert running.stdin is not None and running.stderr is not None
    assert read_until(running.stderr.fileno(), b"\n") == b"one\n"
    running.stdin.write(b"go on\n")
    done = finish(running)
    assert done.err == b"two\n"
    assert done.out.startswith(b"two\n\n[Showing lines 2-2 of 2. ")


def test_live_has_the_raw_output(user: User) -> None:
    done = user.ctx("run", "--live", "--strip-ansi", "printf", r"\033[1mbold\033[0m\n")
    assert done == (b"bold\n", b"\x1b[1mbold\x1b[0m\n", 0)


def test_json_has_the_keys_of_both(user: User) -> None:
    found = ran(user, "-n", "1", "--", "sh", "-c", "seq 3; sleep 0.2; exit 7")
    assert set(found) >= KEYS | {"schema", "content", "truncated", "totalLines", "notice", "fullOutputPath"}
    assert found["command"] == ["sh", "-c", "seq 3; sleep 0.2; exit 7"]
    assert (found["exitCode"], found["signal"], found["timedOut"]) == (7, None, False)
    assert 200 <= found["durationMs"] < 20_000
    assert (found["content"], found["totalLines"]) == ("3\n", 3)
    assert found["fullOutputPath"] == str(user.spill)
    assert user.ctx("run", "--json", "sh", "-c", "exit 7").code == 7


def test_json_of_any_output_and_any_word(user: User) -> None:
    found = ran(user, "--", "printf", r"\0\377\033%.0s", "caf\udce9")
    assert found["content"] == "\0\ufffd\x1b"
    assert found["command"] == ["printf", r"\0\377\033%.0s", "caf\ufffd"]


def test_nothing_is_printed_of_a_command_that_did_not_start(user: User) -> None:
    done = user.ctx("run", "--json", "no-such-command")
    assert done == (b"", b"ctx run: no-such-command: No such file or directory\n", 127)


def test_large_output_is_bounded_and_whole_in_the_spill(user: User) -> None:
    done = user.ctx("run", "--shell", "yes 0123456789 | head -c 30000000")
    assert len(done.out) < 52_000
    assert user.spill.stat().st_size == 30_000_000
    assert b" of 2727273. Full output: " in done.out


# -- what it leaves behind -------------------------------------------------------------------------------------------


def test_a_background_process_that_holds_the_pipe_holds_nothing_up(user: User) -> None:
    started = time.monotonic()
    done = user.ctx("run", "--shell", "sleep 60 & echo $! > pid; echo hi")
    assert time.monotonic() - started < 10
    assert done == (b"hi\n", b"", 0)
    pid = pid_in(user.work / "pid")
    assert is_running(pid), "it is not ours to end"
    os.kill(pid, signal.SIGKILL)


def test_what_comes_right_after_the_end_is_heard(user: User) -> None:
    done = user.ctx("run", "--shell", "(sleep 0.1; echo late; exec sleep 60) & echo $! > pid; echo early")
    assert done == (b"early\nlate\n", b"", 0)
    os.kill(pid_in(user.work / "pid"), signal.SIGKILL)


def test_a_background_process_that_never_stops_talking_is_left(user: User) -> None:
    done = user.ctx(
        "run", "-n", "none", "--shell", "(while sleep 0.05; do echo talk; done) & echo $! > pid; echo early"
    )
    assert done.out.startswith(b"early\ntalk\n")
    assert done.code == 0
    os.kill(pid_in(user.work / "pid"), signal.SIGKILL)


def test_a_command_that_closes_its_output_and_lives_on(user: User) -> None:
    found = ran(user, "--", "sh", "-c", "echo hi; exec >&- 2>&-; sleep 0.5; exit 5")
    assert (found["content"], found["exitCode"]) == ("hi\n", 5)
    assert found["durationMs"] >= 500


def test_a_command_that_stops_reading_its_input(user: User) -> None:
    done = user.sh('yes | ctx run -- sh -c "exec <&-; echo hi"; echo "${PIPESTATUS[@]}"')
    assert done.out == b"hi\n141 0\n"


# -- a time limit ----------------------------------------------------------------------------------------------------


def test_a_time_limit(user: User) -> None:
    started = time.monotonic()
    done = user.ctx("run", "--timeout", "0.3", "--", "sh", "-c", "echo working; sleep 60")
    assert time.monotonic() - started < 10
    assert done == (b"working\n\nCommand timed out after 0.3 seconds\n", b"", 124)
    found = ran(user, "--timeout", "300ms", "--", "sleep", "60")
    assert (found["timedOut"], found["exitCode"], found["signal"]) == (True, 128 + 15, 15)
    assert 300 <= found["durationMs"] < 10_000
    assert user.ctx("run", "--timeout", "0.1", "sleep", "60").out == b"Command timed out after 0.1 seconds\n"


def test_a_time_limit_that_is_not_reached(user: User) -> None:
    for limit in ("30", "30s", "1m", "1.5h", "none"):
        assert user.ctx("run", "--timeout", limit, "sh", "-c", "echo hi; exit 3").code == 3


@pytest.mark.parametrize("limit", ["", "x", "-1", "1w", "s", "1e3"])
def test_a_bad_time_limit(user: User, limit: str) -> None:
    done = user.ctx("run", "--timeout", limit, "echo", "hi")
    assert (done.out, done.code) == (b"", 2)
    assert done.err.startswith(b"ctx run: ")
    assert b"--timeout" in done.err


def test_a_time_limit_ends_the_whole_group(user: User) -> None:
    script = "sleep 60 & echo $! > one; sh -c 'sleep 60 & echo $! > two; wait' & wait"
    assert user.ctx("run", "--timeout", "0.4", "--shell", script).code == 124
    for name in ("one", "two"):
        assert not is_running(pid_in(user.work / name)), name


def test_a_time_limit_kills_what_ignores_term(user: User) -> None:
    """The command itself ends at once, but not all it started."""
    script = f"sh -c '{NO_TERM}echo $$ > stubborn; while :; do sleep 60; done' & exec sleep 60"
    started = time.monotonic()
    done = user.ctx("run", "--timeout", "0.4", "--shell", script.replace("trap ''", 'trap ""'))
    assert 2 < time.monotonic() - started < 15, "it has two seconds to end by itself"
    assert done == (b"Command timed out after 0.4 seconds\n", b"", 124)
    assert not is_running(pid_in(user.work / "stubborn"))


def test_a_time_limit_lets_a_command_clean_up(user: User) -> None:
    done = user.ctx("run", "--timeout", "0.5", "--", *handling(signal.SIGTERM, "cleaned", then=0))
    assert done == (b"ready\ncleaned\n\nCommand timed out after 0.5 seconds\n", b"", 124)


def test_a_time_limit_ends_a_stopped_command(user: User) -> None:
    found = ran(user, "--timeout", "0.3", "--shell", "kill -STOP $$")
    assert (found["timedOut"], found["signal"]) == (True, signal.SIGTERM), "it was not killed"


@linux_only
def test_waiting_for_a_stubborn_group_costs_nothing(user: User) -> None:
    script = """sh -c 'trap "" TERM; while :; do sleep 60; done' & exec sleep 60"""
    running = user.start_ctx("run", "--timeout", "0.2", "--shell", script)
    assert running.stdout is not None
    running.stdout.read()
    _, status, usage = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    assert running.returncode == 124
    assert usage.ru_utime + usage.ru_stime < 0.5


@linux_only
def test_zombies_are_not_waited_for(user: User) -> None:
    """In a container there is often nobody who takes up what a command leaves behind."""
    adopt = "import ctypes, subprocess, sys, time\n"
    adopt += "assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER\n"
    adopt += "began = time.monotonic()\n"
    adopt += "code = subprocess.call([sys.executable, '-m', 'ctxkit', *sys.argv[1:]])\n"
    adopt += "print(code, time.monotonic() - began)\n"
    done = user.run(sys.executable, "-c", adopt, "run", "--timeout", "0.3", "--shell", "echo hi; sleep 60 & wait")
    code, seconds = done.out.split(b"\n")[-2].split()
    assert code == b"124"
    assert float(seconds) < 2, "not the two seconds that a living process has"


# -- signals to us ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_is_passed_on_and_the_output_printed(user: User, number: signal.Signals) -> None:
    running = start_ready(user, "--", sys.executable, "-c", DEFAULT.format(number=number.value))
    running.send_signal(number)
    done = finish(running)
    assert done.out == f"ready\n\nCommand exited with code {128 + number}\n".encode()
    assert done.code == -number, "whoever runs us sees that a signal ended it"


def test_a_command_that_catches_the_signal_has_the_last_word(user: User) -> None:
    running = start_ready(user, "--", *handling(signal.SIGTERM, "cleaned", then=3))
    running.terminate()
    done = finish(running)
    assert (done.out, done.code) == (b"ready\ncleaned\n\nCommand exited with code 3\n", 3)


def test_a_signal_reaches_the_whole_group(user: User) -> None:
    running = start_ready(user, "--shell", "sleep 60 & echo $! > pid; echo ready; wait")
    running.terminate()
    assert finish(running).out.startswith(b"ready\n")
    pid = pid_in(user.work / "pid")
    eventually(lambda: not is_running(pid))


def test_a_command_that_ignores_the_signal_is_killed(user: User) -> None:
    running = start_ready(user, "--shell", f"{NO_TERM}echo ready; while :; do sleep 60; done")
    started = time.monotonic()
    running.terminate()
    done = finish(running)
    assert time.monotonic() - started > 1.5
    assert (done.out, done.code) == (b"ready\n\nCommand exited with code 137\n", 137)


def test_a_second_signal_does_not_wait(user: User) -> None:
    running = start_ready(user, "--", *handling(signal.SIGTERM, "heard"))
    assert running.stderr is not None
    started = time.monotonic()
    running.terminate()
    read_until(running.stderr.fileno(), b"heard\n")
    running.terminate()
    assert finish(running).code == 137
    assert time.monotonic() - started < 2


def test_an_interrupt_is_no_order_to_die(user: User) -> None:
    """Some programs take it as "stop what you are doing", and so often as the user likes."""
    running = start_ready(user, "--", *handling(signal.SIGINT, "interrupted"))
    assert running.stderr is not None
    for _ in range(3):
        running.send_signal(signal.SIGINT)
        read_until(running.stderr.fileno(), b"interrupted\n")
    running.terminate()
    done = finish(running)
    assert done.out == b"ready\n" + b"interrupted\n" * 3 + b"\nCommand exited with code 143\n"
    assert done.code == -signal.SIGTERM


def test_a_signal_to_a_stuck_run_ends_both(user: User) -> None:
    """Nobody reads what ctx prints."""
    read_end, write_end = os.pipe()
    script = "echo $$ > pid; exec yes"
    running = user.start_ctx("run", "--head", "-n", "none", "-c", "none", "--shell", script, stdout=write_end)
    pid = pid_in(user.work / "pid")

    def ended() -> bool:
        running.terminate()
        time.sleep(0.05)
        return running.poll() is not None

    eventually(ended)
    assert running.returncode == -signal.SIGTERM
    eventually(lambda: not is_running(pid))
    os.close(read_end)
    os.close(write_end)


def test_no_zombie_and_nobody_left(user: User) -> None:
    running = start_ready(
        user, "--timeout", "60", "--shell", "echo $$ > pid; echo ready; read line", stdin=subprocess.PIPE
    )
    pid = pid_in(user.work / "pid")
    assert is_running(pid)
    assert running.stdin is not None
    running.stdin.write(b"\n")
    assert finish(running).code == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


# -- a reader that leaves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--head"], ["--json"]], ids=str)
def test_an_endless_command_ends_when_the_reader_leaves(user: User, options: list[str]) -> None:
    words = " ".join(options)
    script = f"ctx run {words} --shell 'echo $$ > pid; exec yes' | true; " + 'echo "${PIPESTATUS[0]}"'
    assert user.sh(script) == (b"141\n", b"", 0)
    assert not is_running(pid_in(user.work / "pid"))
    assert user.spills == []


def test_a_command_that_prints_nothing_more_is_waited_for(user: User) -> None:
    """As in a pipe: the shell goes on when the command has done its work, not in the middle of it."""
    script = "ctx run --head --shell 'sleep 0.5; echo done > result' | true; cat result"
    assert user.sh(script) == (b"done\n", b"", 0)


@needs_dev_full
def test_nothing_is_left_when_the_object_cannot_be_written(user: User) -> None:
    done = user.sh("ctx run --json -n 1 seq 3000 > /dev/full")
    assert done == (b"", b"ctx run: write error: No space left on device\n", 1)
    assert user.spills == []


@needs_dev_full
def test_a_full_disk_ends_it_with_an_error(user: User) -> None:
    done = user.sh("ctx run --shell 'seq 3; exit 3' > /dev/full")
    assert done == (b"", b"ctx run: write error: No space left on device\n", 1)


# -- at a terminal ---------------------------------------------------------------------------------------------------


def test_ctrl_c_at_a_terminal(user: User) -> None:
    """The keyboard's signal reaches the command; what it printed is there; the terminal can be used afterwards."""
    script = (
        "trap : INT; ctx run --live -- sh -c 'echo ready; exec sleep 60' 2> log > out; "
        'echo "status $?"; cat out; read line; echo "got $line"'
    )
    with Terminal() as terminal:
        running = user.start(
            "bash", "-c", script, stdin=terminal.user, stdout=terminal.user, stderr=terminal.user, **terminal.settings
        )
        log = user.work / "log"
        eventually(lambda: log.exists() and log.read_bytes() == b"ready\n")
        terminal.type(b"\x03")
        seen = read_until(terminal.keyboard, b"code 130\r\n")
        assert b"status 130\r\nready\r\n\r\nCommand exited with code 130\r\n" in seen
        terminal.type(b"hello\n")
        assert b"got hello" in read_until(terminal.keyboard, b"got hello\r\n")
        assert running.wait(PATIENCE) == 0


def test_one_ctrl_c_is_one(user: User) -> None:
    """The keyboard has told the command already; a program may take the second for an order to die."""
    with Terminal() as terminal:
        running = user.start_ctx(
            *("run", "--live", "--", *handling(signal.SIGINT, "interrupted")), stdin=terminal.user, **terminal.settings
        )
        assert running.stderr is not None
        read_until(running.stderr.fileno(), b"ready\n")
        terminal.type(b"\x03")
        read_until(running.stderr.fileno(), b"interrupted\n")
        running.terminate()
        done = finish(running)
        assert done.out == b"ready\ninterrupted\n\nCommand exited with code 143\n"


def test_a_command_may_read_the_keyboard(user: User) -> None:
    with Terminal() as terminal:
        running = user.start_ctx(
            "run",
            "sh",
            "-c",
            'read line; echo "got $line"',
            stdin=terminal.user,
            stderr=terminal.user,
            **terminal.settings,
        )
        terminal.type(b"hello\n")
        assert finish(running) == (b"got hello\n", b"", 0)


def test_ctrl_c_at_a_terminal_with_a_time_limit(user: User) -> None:
    """The command has a group of its own then, so the signal is passed on."""
    with Terminal() as terminal:
        running = user.start_ctx(
            *("run", "--live", "--timeout", "60", "--", sys.executable, "-c", DEFAULT.format(number=2)),
            stdin=terminal.user,
            **terminal.settings,
        )
        assert running.stderr is not None
        read_until(running.stderr.fileno(), b"ready\n")
        terminal.type(b"\x03")
        done = finish(running)
        assert (done.out, done.code) == (b"ready\n\nCommand exited with code 130\n", -2)


def test_a_terminal_that_hangs_up(user: User) -> None:
    with Terminal() as terminal:
        running = user.start_ctx(
            *("run", "--live", "--", sys.executable, "-c", DEFAULT.format(number=1)),
            stdin=terminal.user,
            **terminal.settings,
        )
        assert running.stderr is not None
        read_until(running.stderr.fileno(), b"ready\n")
        terminal.hang_up()
        done = finish(running)
        assert (done.out, done.code) == (b"ready\n\nCommand exited with code 129\n", -1)


@not_as_root
def test_a_command_of_somebody_else_cannot_be_run(user: User) -> None:
    user.file("secret", b"#!/bin/sh\n").chmod(0o000)
    assert user.ctx("run", "./secret") == (b"", b"ctx run: ./secret: Permission denied\n", 126)
