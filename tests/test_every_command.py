"""Every command keeps the same promises (DESIGN "Conventions of every command"), as a real process.

A command is a filter if its operands are FILEs; the others keep the promises that have nothing to do with input. What
stands in the tables below is only what cannot be read from the declarations.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from shell import Terminal, User, finish, needs_dev_full

from ctxkit.cli import spec
from ctxkit.cli.commands import COMMANDS

EVERY = {command.name: command for command in spec.all_commands()}
FILTERS = [name for name, command in EVERY.items() if any(operand.dest == "files" for operand in command.operands)]
STREAMING = ["truncate"]  # filters that print while they read; the others have one result, at the end, as wc has
WITHOUT_FILES = {"run": ["--", "echo", "hi"]}  # no filter: words with which it prints something and exits with 0

SIGPIPE = -signal.SIGPIPE
TEXT = b"one\ntwo\nthree\n"

every_command = pytest.mark.parametrize("name", COMMANDS)
every_filter = pytest.mark.parametrize("name", FILTERS)


def is_an_error(err: bytes, name: str) -> bool:
    """Say whether this is one line that says what is wrong with which command, and at most one hint."""
    first, *more = err.decode().split("\n")
    hinted = len(more) == 1 or (len(more) == 2 and more[0].startswith("hint: "))
    return first.startswith(f"ctx {name}: ") and len(first) > len(f"ctx {name}: ") and hinted and more[-1] == ""


def test_the_tables_name_commands_that_exist() -> None:
    assert set(STREAMING) <= set(FILTERS)
    assert set(WITHOUT_FILES) <= set(COMMANDS) - set(FILTERS)
    assert FILTERS


# -- help and usage --------------------------------------------------------------------------------------------------


@every_command
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_is_data_and_names_every_option(user: User, name: str, flag: str) -> None:
    done = user.ctx(*name.split(), flag)
    assert (done.code, done.err) == (0, b"")
    text = done.out.decode()
    assert text.startswith(f"Usage: ctx {name} ")
    for option in EVERY[name].options:
        for spelling in option.flags:
            assert re.search(rf"(?<![\w-]){re.escape(spelling)}(?![\w-])", text), spelling


@every_command
def test_help_works_after_other_words(user: User, name: str) -> None:
    assert user.ctx(*name.split(), "-q", "--help").out == user.ctx(*name.split(), "--help").out


@every_command
def test_an_unknown_option_is_a_usage_error_with_a_hint(user: User, name: str) -> None:
    done = user.ctx(*name.split(), "--no-such-option", input=TEXT)
    assert (done.code, done.out) == (2, b"")
    assert is_an_error(done.err, name)
    assert done.err.decode().endswith(f"hint: see 'ctx {name} --help'\n")


@every_command
def test_an_option_with_a_line_break_is_still_one_line_of_error(user: User, name: str) -> None:
    done = user.ctx(*name.split(), "--no\nsuch", input=TEXT)
    assert done.code == 2
    assert is_an_error(done.err, name)


@every_command
def test_options_are_not_abbreviated(user: User, name: str) -> None:
    done = user.ctx(*name.split(), "--qui", input=TEXT)
    assert (done.code, done.out) == (2, b"")


@every_command
def test_help_to_a_reader_that_has_left_ends_like_any_filter(user: User, name: str) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = user.start_ctx(*name.split(), "--help", stdout=write_end)
    os.close(write_end)
    assert finish(process) == (b"", b"", SIGPIPE)


@needs_dev_full
@every_command
def test_help_to_a_full_disk_is_an_error(user: User, name: str) -> None:
    with open("/dev/full", "wb") as full:
        done = user.ctx(*name.split(), "--help", stdout=full)
    assert done.code == 1
    assert done.err.endswith(b": write error: No space left on device\n")
    assert b"Traceback" not in done.err


def test_version_without_an_installation(user: User) -> None:
    done = user.run(sys.executable, "-m", "ctxkit", "--version")
    assert re.fullmatch(rb"ctx \(ctxkit\) \d+\.\d+\.\d+\n", done.out)
    assert (done.err, done.code) == (b"", 0)


def test_no_command_shows_the_help_as_an_error(user: User) -> None:
    done = user.ctx()
    assert (done.out, done.code) == (b"", 2)
    assert done.err.startswith(b"Usage: ctx ")


def test_an_unknown_command_is_a_usage_error_with_a_suggestion(user: User) -> None:
    done = user.ctx("truncat")
    assert (done.out, done.code) == (b"", 2)
    assert done.err.startswith(b"ctx: no such command 'truncat'. Did you mean 'truncate'")
    assert done.err.endswith(b"?\nhint: see 'ctx --help'\n")


# -- input -----------------------------------------------------------------------------------------------------------


@every_filter
def test_empty_input(user: User, name: str) -> None:
    done = user.ctx(name, input=b"")
    assert (done.code, done.err) == (0, b"")
    assert user.ctx(name, stdin=subprocess.DEVNULL) == done


@every_filter
def test_a_dash_is_standard_input(user: User, name: str) -> None:
    done = user.ctx(name, "-", input=TEXT)
    assert (done.code, done.err) == (0, b"")
    assert done == user.ctx(name, input=TEXT)


@every_filter
def test_standard_input_can_be_read_only_once(user: User, name: str) -> None:
    done = user.ctx(name, "-", "-", input=TEXT)
    assert (done.out, done.code) == (b"", 2)
    assert is_an_error(done.err, name)


@every_filter
def test_a_missing_file(user: User, name: str) -> None:
    done = user.ctx(name, "nowhere.txt")
    assert done == (b"", f"ctx {name}: nowhere.txt: No such file or directory\n".encode(), 3)


@every_filter
@pytest.mark.parametrize("made_of", [b"a\nb", b"caf\xe9", b"\x1b]0;title\x07", "na\u0085me".encode()])
def test_a_missing_file_with_a_strange_name_is_named_on_one_line(user: User, name: str, made_of: bytes) -> None:
    done = user.ctx(name, made_of)
    assert (done.out, done.code) == (b"", 3)
    assert is_an_error(done.err, name)
    assert done.err.removesuffix(b"\n").decode().isprintable()
    quoted = done.err.removeprefix(f"ctx {name}: ".encode()).removesuffix(b": No such file or directory\n")
    assert user.sh(f"printf %s {os.fsdecode(quoted)}").out == made_of, "a shell reads the name as it is"


@every_filter
def test_a_folder_as_file(user: User, name: str) -> None:
    (user.work / "folder").mkdir()
    assert user.ctx(name, "folder") == (b"", f"ctx {name}: folder: Is a directory\n".encode(), 3)


@every_filter
def test_one_bad_file_does_not_stop_the_others(user: User, name: str) -> None:
    """U05."""
    user.file("first", b"one\n")
    (user.work / "second").mkdir()
    user.file("third", b"three\n")
    done = user.ctx(name, "first", "second", "third")
    assert done.code == 3
    assert done.err == f"ctx {name}: second: Is a directory\n".encode()
    assert done.out == user.ctx(name, "first", "third").out


@every_filter
def test_binary_input(user: User, name: str) -> None:
    data = bytes(range(256)) * 40
    done = user.ctx(name, input=data)
    assert (done.code, done.err) == (0, b"")
    user.file("data", data)
    assert user.ctx(name, "data") == done


@every_filter
def test_standard_input_closed(user: User, name: str) -> None:
    done = user.sh(f"ctx {name} <&-")
    assert done == (b"", f"ctx {name}: standard input: closed\n".encode(), 3)


@every_filter
def test_a_file_is_read_with_standard_input_closed(user: User, name: str) -> None:
    user.file("text", TEXT)
    assert user.sh(f"ctx {name} text <&-") == user.ctx(name, "text")


@every_filter
def test_a_terminal_on_standard_input_is_no_input(user: User, name: str) -> None:
    with Terminal() as terminal:
        done = user.ctx(name, stdin=terminal.user)
    assert (done.out, done.code) == (b"", 2)
    assert done.err.decode() == (
        f"ctx {name}: no input\nhint: name a FILE, or pipe something in; see 'ctx {name} --help'\n"
    )


@every_filter
def test_a_file_is_read_with_a_terminal_on_standard_input(user: User, name: str) -> None:
    user.file("text", TEXT)
    with Terminal() as terminal:
        done = user.ctx(name, "text", stdin=terminal.user)
    assert done == user.ctx(name, "text")


@every_filter
def test_operands_may_look_like_options_after_a_double_dash(user: User, name: str) -> None:
    user.file("-n", TEXT)
    user.file("text", TEXT)
    assert user.ctx(name, "--", "-n").out == user.ctx(name, "text").out


@every_filter
def test_a_non_blocking_pipe_as_input(user: User, name: str) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    process = user.start_ctx(name, stdin=read_end)
    os.close(read_end)
    with pytest.raises(subprocess.TimeoutExpired):  # it waits for more, and does not take "not yet" for an error
        process.wait(0.3)
    os.write(write_end, TEXT)
    os.close(write_end)
    assert finish(process) == user.ctx(name, input=TEXT)


# -- output ----------------------------------------------------------------------------------------------------------


def words_that_print(user: User, name: str) -> list[str]:
    """Return a command line that prints something, whatever standard input is."""
    if name in WITHOUT_FILES:
        return [*name.split(), *WITHOUT_FILES[name]]
    user.file("text", TEXT)
    return [*name.split(), "text"]


printing = pytest.mark.parametrize("name", [*FILTERS, *WITHOUT_FILES])


@printing
def test_a_reader_that_has_left_ends_it_like_any_filter(user: User, name: str) -> None:
    words = words_that_print(user, name)
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = user.start_ctx(*words, stdout=write_end)
    os.close(write_end)
    assert finish(process) == (b"", b"", SIGPIPE)
    assert user.spills == []


@printing
def test_the_same_in_the_slow_lane(user: User, name: str) -> None:
    """Typer would print `Aborted!`, or exit with 1."""
    words = words_that_print(user, name)
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = user.start_ctx(*words, stdout=write_end, env={f"CTX_{name.upper()}_QUIET": "1"})
    os.close(write_end)
    assert finish(process) == (b"", b"", SIGPIPE)


@printing
def test_a_shell_sees_141(user: User, name: str) -> None:
    words = words_that_print(user, name)
    done = user.sh('"$@" | true; echo "${PIPESTATUS[0]}"', "ctx", *words, env={"PATH": user.environ["PATH"]})
    assert done.err == b""
    assert done.out in (b"141\n", b"0\n"), "0: it was faster than true"


@printing
def test_both_outputs_into_head(user: User, name: str) -> None:
    words = words_that_print(user, name)
    done = user.sh('"$@" 2>&1 | head -n 1', "ctx", *words)
    assert done.out.count(b"\n") == 1
    assert b"Traceback" not in done.out
    assert (done.err, done.code) == (b"", 0)


@printing
def test_standard_output_closed(user: User, name: str) -> None:
    words = words_that_print(user, name)
    done = user.sh('"$@" >&-', "ctx", *words)
    assert done == (b"", f"ctx {name}: standard output is closed\n".encode(), 1)


@printing
def test_standard_error_closed(user: User, name: str) -> None:
    words = words_that_print(user, name)
    assert user.sh('"$@" 2>&-', "ctx", *words).code == 0
    assert user.sh('"$@" 2>&-', "ctx", *name.split(), "--no-such-option").code == 2


@needs_dev_full
@printing
def test_u03_a_full_disk_is_an_error(user: User, name: str) -> None:
    words = words_that_print(user, name)
    done = user.sh('"$@" > /dev/full', "ctx", *words)
    assert done == (b"", f"ctx {name}: write error: No space left on device\n".encode(), 1)


@needs_dev_full
@printing
def test_errors_to_a_full_disk_are_nobodys_problem(user: User, name: str) -> None:
    words = words_that_print(user, name)
    assert user.sh('"$@" 2> /dev/full', "ctx", *words).code == 0
    assert user.sh('"$@" 2> /dev/full', "ctx", *name.split(), "--no-such-option").code == 2


@printing
def test_a_non_blocking_pipe_as_output_gets_it_all(user: User, name: str) -> None:
    words = words_that_print(user, name)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    room = 0
    try:
        while True:
            room += os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        pass
    process = user.start_ctx(*words, stdout=write_end)
    os.close(write_end)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    with open(read_end, "rb") as reader:
        everything = reader.read()
    assert finish(process).code == 0
    assert everything[room:] == user.ctx(*words).out


@pytest.mark.parametrize("name", STREAMING)
def test_endless_input_ends_when_the_reader_leaves(user: User, name: str) -> None:
    """Nobody would ever see the result."""
    done = user.sh(f'yes | ctx {name} | head -n 1; echo "${{PIPESTATUS[@]}}"', env={"CTX_TRUNCATE_HEAD": "1"})
    assert done == (b"y\n141 141 0\n", b"", 0)
    done = user.sh(f'yes | ctx {name} | true; echo "${{PIPESTATUS[@]}}"')
    assert done == (b"141 141 0\n", b"", 0)
    assert user.spills == []


# -- settings --------------------------------------------------------------------------------------------------------


@every_filter
def test_u02_quiet_silences_warnings_and_nothing_else(user: User, name: str) -> None:
    """No XDG folder, no home: the only warning that every filter may give. An error is none."""
    done = user.ctx(name, "-q", "nowhere")
    assert done == (b"", f"ctx {name}: nowhere: No such file or directory\n".encode(), 3)
    noisy = user.ctx(name, input=TEXT * 1000, env={"HOME": None, "XDG_STATE_HOME": "/dev/null"})
    quiet = user.ctx(name, "-q", input=TEXT * 1000, env={"HOME": None, "XDG_STATE_HOME": "/dev/null"})
    assert (quiet.out, quiet.code, quiet.err) == (noisy.out, noisy.code, b"")
    for line in noisy.err.decode().splitlines():
        assert line.startswith(f"ctx {name}: warning: ")


@every_command
def test_the_environment_sets_a_default_of_every_flag(user: User, name: str) -> None:
    """A value that is none is refused, and the message names the option: so it was read."""
    operands = ["x"] * max(1, sum(operand.required for operand in EVERY[name].operands))
    for option in EVERY[name].options:
        if option.kind == "text":
            continue
        long = max(option.flags, key=len)
        variable = f"CTX_{name}_{long[2:]}".upper().replace(" ", "_").replace("-", "_")
        needed = [word for other in EVERY[name].options if other.required for word in (other.flags[0], "x")]
        done = user.ctx(*name.split(), *needed, *operands, env={variable: "nonsense"})
        assert done.code == 2, variable
        assert option.flags[0].encode() in done.err, variable
        assert b"nonsense" in done.err, variable


def test_a_flag_wins_over_the_environment(user: User) -> None:
    text = b"1\n2\n3\n4\n"
    alone = ["--notice", "none"]
    assert user.ctx("truncate", *alone, input=text, env={"CTX_TRUNCATE_LINES": "2"}).out == b"3\n4\n"
    assert user.ctx("truncate", *alone, "-n", "1", input=text, env={"CTX_TRUNCATE_LINES": "2"}).out == b"4\n"
    head = {"CTX_TRUNCATE_HEAD": "1", "CTX_TRUNCATE_LINES": "2", "CTX_TRUNCATE_NOTICE": "none"}
    assert user.ctx("truncate", input=text, env=head).out == b"1\n2\n"
    assert user.ctx("truncate", "--tail", input=text, env=head).out == b"3\n4\n"
    assert user.ctx("truncate", "--middle", input=text, env=head).out.startswith(b"1\n[... 2 lines")


def test_the_environment_of_one_command_is_not_that_of_another(user: User) -> None:
    user.file("text", TEXT)
    assert user.ctx("truncate", "text", env={"CTX_RUN_LINES": "1"}).out == TEXT


def good_value(option: spec.Param) -> list[str]:
    """Return a value that the option takes, none for a flag."""
    if isinstance(option.kind, tuple):
        return ["7"] if option.kind[0] == "int" else [option.kind[1][0]]
    return {"flag": [], "text": ["x"]}.get(option.kind, ["7"])


@every_command
def test_two_directions_at_once_are_a_usage_error(user: User, name: str) -> None:
    for group in EVERY[name].exclusive:
        options = [option for option in EVERY[name].options if option.dest in group]
        words = []
        for option in options[:2]:
            words += [option.flags[0], *good_value(option)]
        done = user.ctx(*name.split(), *words, "x")
        assert (done.out, done.code) == (b"", 2)
        assert is_an_error(done.err, name)
        assert done.err.decode().startswith(f"ctx {name}: {options[0].flags[0]} and {options[1].flags[0]} do not go")


@printing
def test_json_is_one_object_a_line(user: User, name: str) -> None:
    words = words_that_print(user, name)
    done = user.ctx(*name.split(), "--json", *words[len(name.split()) :])
    assert (done.code, done.err) == (0, b"")
    (line,) = done.out.decode().removesuffix("\n").split("\n")
    assert json.loads(line)["schema"] == 1


@every_filter
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("lane", ["fast", "slow"])
def test_a_signal_while_a_fifo_is_opened_ends_it(user: User, name: str, number: int, lane: str) -> None:
    """Nothing was read, nothing is to be said."""
    os.mkfifo(user.work / "fifo")
    env = {f"CTX_{name.upper()}_QUIET": "1"} if lane == "slow" else {}
    process = user.start_ctx(name, "fifo", env=env)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.send_signal(number)
    assert finish(process) == (b"", b"", -number)
