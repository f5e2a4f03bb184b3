"""The full text of what was cut is saved, whole, privately, and not for ever; where it cannot be, that is said."""

from __future__ import annotations

import json
import os
import re
import resource
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import User, as_root, eventually, finish, linux_only, needs_dev_fd, not_as_root, read_until

LINES = b"".join(b"line %d\n" % number for number in range(3000))
COLOURED = b"\x1b[31mred\x1b[0m \xff caf\xe9\r\n" * 3000
LONG = b"x" * 300_000
DAY = 86400
WARNING = b"ctx truncate: warning: the full output cannot be saved: "


def make_spill(folder: Path, number: int, *, age: float, size: int = 10) -> Path:
    """Put a spill of some age and size, without its bytes on the disk, into a folder."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"ctx-{number:016x}.txt"
    with path.open("wb") as file:
        file.truncate(size)
    os.utime(path, (time.time() - age,) * 2)
    return path


# -- whole -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["--tail", "--head", "--middle"])
@pytest.mark.parametrize(
    ("options", "data"),
    [
        (["-n", "10"], LINES),
        (["-n", "0"], LINES),
        (["-c", "1K"], LINES),
        (["-c", "0"], LINES),
        (["-c", "1K"], LONG),
        (["-c", "1K", "--whole-lines"], LONG),
        (["-w", "5"], LINES),
        (["-w", "5", "-n", "10"], LINES),
        (["--offset", "2000", "-n", "10"], LINES),
        (["--strip-ansi", "--cr", "-n", "10"], COLOURED),
        (["--strip-ansi", "-w", "3"], COLOURED),
        (["-n", "10", "--json"], COLOURED),
        (["-n", "10", "--notice", "stderr"], LINES),
        (["-n", "10", "--notice", "none"], LINES),
        (["-n", "1"], b"a\r\nb\0c\xff\n\nlast, without its end"),
        (["-c", "100K"], bytes(range(256)) * 20_000),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_t02_whatever_the_reason_of_the_cut_every_byte_is_saved(
    user: User, keep: str, options: list[str], data: bytes
) -> None:
    done = user.ctx("truncate", keep, *options, input=data)
    assert (done.err if "stderr" not in options else b"", done.code) == (b"", 0)
    assert user.spill.read_bytes() == data
    if "--json" in options:
        assert json.loads(done.out)["fullOutputPath"] == str(user.spill)
    elif "none" not in options:
        said = done.err if "stderr" in options else done.out
        assert f"Full output: {user.spill}]\n".encode() in said


def test_input_that_comes_byte_by_byte(user: User) -> None:
    running = user.start_ctx("truncate", "-n", "1", stdin=subprocess.PIPE)
    assert running.stdin is not None
    for byte in b"a\nb\nc\n":
        os.write(running.stdin.fileno(), bytes([byte]))
    assert finish(running).out.startswith(b"c\n")
    assert user.spill.read_bytes() == b"a\nb\nc\n"


def test_the_spill_of_a_large_input_grows_before_it_is_known_to_be_cut(user: User) -> None:
    """More than a megabyte is not held in memory for long, even if it may still fit."""
    running = user.start_ctx("truncate", "-c", "10M", "-n", "none", stdin=subprocess.PIPE)
    assert running.stdin is not None
    data = b"x" * (3 << 20)
    running.stdin.write(data)
    running.stdin.flush()
    eventually(lambda: user.spills and user.spill.stat().st_size > 2 << 20)
    done = finish(running)
    assert (done.out, done.err, done.code) == (data, b"", 0)
    assert user.spills == []


def test_standard_input_from_a_regular_file_is_saved_whole_too(user: User) -> None:
    """It has no name to be read again by; reading only its end would save only that."""
    path = user.file("text", LINES * 10)
    with path.open("rb") as file:
        done = user.ctx("truncate", "--notice", "none", "-c", "100", stdin=file)
    assert done.out == LINES[-100:]
    assert user.spill.read_bytes() == LINES * 10


# -- private ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_t16_only_its_owner_can_read_it(user: User, umask: int) -> None:
    assert user.ctx("truncate", "-n", "1", input=LINES, umask=umask).code == 0
    assert stat.S_IMODE(user.spill.stat().st_mode) == 0o600
    assert stat.S_IMODE(user.spill.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(user.spill.parent.parent.stat().st_mode) == 0o700


def test_t16_names_cannot_be_guessed(user: User) -> None:
    for _ in range(5):
        user.ctx("truncate", "-n", "1", input=LINES)
    names = [path.name for path in user.spills]
    assert len(names) == 5
    for name in names:
        assert re.fullmatch(r"ctx-[0-9a-f]{16}\.txt", name)
    digits = [name[4:20] for name in names]
    assert max(len(set(column)) for column in zip(*digits, strict=True)) > 1
    assert all(len(set(column)) > 1 for column in list(zip(*digits, strict=True))[:8]), "the first half varies, too"


@linux_only
def test_t16_it_is_made_where_nothing_is_and_no_link_is_followed(user: User) -> None:
    """Names are random, so what would happen to a name that is taken can only be seen from the system call."""
    code = (
        "import os, sys\n"
        "from ctxkit import spill\n"
        "os.urandom = lambda size: bytes(size)\n"
        "one = spill.Spill(sys.argv[1])\n"
        "one.feed(b'secret', needed=True)\n"
        "print(one.close(needed=True))\n"
    )
    target = user.file("target", b"precious")
    folder = user.work / "spills"
    folder.mkdir()
    (folder / f"ctx-{'0' * 16}.txt").symlink_to(target)
    done = user.run(sys.executable, "-c", code, str(folder))
    assert done.out == b"None\n"
    assert b"File exists" in done.err
    assert target.read_bytes() == b"precious"


def test_a_folder_that_is_there_is_taken_as_it_is(user: User) -> None:
    folder = user.work / "shared"
    folder.mkdir(mode=0o755)
    os.chmod(folder, 0o755)
    done = user.ctx("truncate", "-n", "1", "--spill-dir", "shared", input=LINES)
    (saved,) = folder.glob("*")
    assert saved.read_bytes() == LINES
    assert f"Full output: {saved}]".encode() in done.out
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert user.spills == []


def test_a_folder_that_is_missing_is_made(user: User) -> None:
    assert user.ctx("truncate", "-n", "1", "--spill-dir", "a/b/c", input=LINES).err == b""
    (saved,) = (user.work / "a/b/c").glob("*")
    assert saved.read_bytes() == LINES
    assert stat.S_IMODE(saved.parent.stat().st_mode) == 0o700


def test_without_xdg_it_is_below_the_home(user: User) -> None:
    done = user.ctx("truncate", "-n", "1", input=LINES, env={"XDG_STATE_HOME": None})
    (saved,) = (user.home / ".local/state/ctxkit/spill").glob("*")
    assert str(saved).encode() in done.out


# -- none left behind ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"a\n", LINES[:15_000], bytes(range(256)) * 100], ids=len)
@pytest.mark.parametrize("options", [[], ["--json"], ["--head"], ["--middle"], ["--strip-ansi", "--cr"]], ids=str)
def test_nothing_cut_nothing_saved(user: User, data: bytes, options: list[str]) -> None:
    assert user.ctx("truncate", *options, input=data).code == 0
    assert list(user.state.rglob("*")) == [], "not even a folder"


@pytest.mark.parametrize("options", [["--tail"], ["--head"], ["--middle"], ["--json"], ["--head", "--json"]], ids=str)
def test_nothing_is_left_when_the_reader_went_away(user: User, options: list[str]) -> None:
    """Nobody was told the name."""
    read_end, write_end = os.pipe()
    running = user.start_ctx("truncate", "-n", "1500", *options, stdin=subprocess.PIPE, stdout=write_end)
    os.close(write_end)
    assert running.stdin is not None
    running.stdin.write(LINES)
    running.stdin.flush()
    eventually(lambda: user.spills)
    os.close(read_end)
    done = finish(running)
    assert (done.err, done.code) == (b"", -13)
    assert user.spills == []


def test_nothing_is_left_when_the_object_cannot_be_written(user: User) -> None:
    """With --json all is read before anything is written."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    path = user.file("text", LINES)
    with path.open("rb") as file:
        running = user.start_ctx("truncate", "--json", "-n", "1", stdin=file, stdout=write_end)
    os.close(write_end)
    assert finish(running) == (b"", b"", -13)
    assert user.spills == []


def test_a_name_that_was_told_is_kept(user: User) -> None:
    done = user.sh("seq 3000 | ctx truncate -n 2; seq 3000 | cmp - $XDG_STATE_HOME/ctxkit/spill/*")
    assert (done.err, done.code) == (b"", 0)


# -- not for ever ----------------------------------------------------------------------------------------------------


def test_t17_old_spills_are_removed(user: User) -> None:
    folder = user.state / "ctxkit/spill"
    old = make_spill(folder, 1, age=7 * DAY + 60)
    young = make_spill(folder, 2, age=7 * DAY - 600)
    user.ctx("truncate", "-n", "1", input=LINES)
    assert not old.exists()
    assert young.exists()
    assert len(user.spills) == 2


def test_t17_beyond_a_total_the_oldest_are_removed(user: User) -> None:
    folder = user.state / "ctxkit/spill"
    sizes = {1: 900, 2: 900, 3: 900, 4: 900}  # MB; age in days
    spills = {days: make_spill(folder, days, age=days * DAY, size=size << 20) for days, size in sizes.items()}
    user.ctx("truncate", "-n", "1", input=LINES)
    assert [days for days, path in spills.items() if path.exists()] == [1, 2]


def test_a_spill_that_was_just_made_is_not_removed_for_its_size(user: User) -> None:
    """Its reader may not have come to it yet."""
    folder = user.state / "ctxkit/spill"
    large = make_spill(folder, 1, age=60, size=5 << 30)
    hours = make_spill(folder, 2, age=7200)
    user.ctx("truncate", "-n", "1", input=LINES)
    assert large.exists()
    assert not hours.exists()


def test_spills_within_the_limits_stay(user: User) -> None:
    folder = user.state / "ctxkit/spill"
    spills = [make_spill(folder, days, age=days * DAY, size=300 << 20) for days in range(1, 6)]
    user.ctx("truncate", "-n", "1", input=LINES)
    assert all(path.exists() for path in spills)


def test_t16_foreign_files_are_never_touched(user: User) -> None:
    folder = user.state / "ctxkit/spill"
    old = make_spill(folder, 1, age=100 * DAY)
    foreign = [
        folder / name
        for name in (
            "notes.txt",
            "ctx-notes.txt",
            "ctx-0123456789abcdef",
            "ctx-0123456789abcdef.txt.bak",
            "ctx-0123456789ABCDEF.txt",
            "ctx-0123456789abcdeg.txt",
            "ctx-0123456789abcde.txt",
            "my-ctx-0123456789abcdef.txt",
            ".ctx-0123456789abcdef.txt",
        )
    ]
    for path in foreign:
        path.write_bytes(b"mine")
        os.utime(path, (0, 0))
    target = user.file("target", b"mine")
    link = folder / "ctx-00000000000000aa.txt"
    link.symlink_to(target)
    inside = folder / "ctx-00000000000000bb.txt"
    inside.mkdir()
    for path in (link, inside, target):
        os.utime(path, (0, 0), follow_symlinks=False)
    user.ctx("truncate", "-n", "1", input=LINES)
    assert not old.exists(), "cleaning went on"
    for path in [*foreign, target, inside]:
        assert path.exists(), path.name
    assert link.is_symlink()


@as_root
def test_t16_spills_of_others_are_never_touched(user: User) -> None:
    folder = user.state / "ctxkit/spill"
    mine = make_spill(folder, 1, age=100 * DAY)
    theirs = make_spill(folder, 2, age=100 * DAY)
    os.chown(theirs, 65534, -1)
    user.ctx("truncate", "-n", "1", input=LINES)
    assert (mine.exists(), theirs.exists()) == (False, True)


def test_many_at_once_clean_up_together(user: User) -> None:
    """What one removes, another has just seen; that is no failure."""
    folder = user.state / "ctxkit/spill"
    old = [make_spill(folder, number, age=100 * DAY) for number in range(300)]
    running = [user.start_ctx("truncate", "-n", "1", stdin=subprocess.PIPE) for _ in range(8)]
    done = [finish(process, LINES) for process in running]
    assert [(one.err, one.code) for one in done] == [(b"", 0)] * 8
    assert not any(path.exists() for path in old)
    assert [path.read_bytes() for path in user.spills] == [LINES] * 8


# -- where it cannot be saved ----------------------------------------------------------------------------------------

CUT = b"line 2999\n\n[Showing lines 3000-3000 of 3000. Full output not saved]\n"


def test_a_state_folder_that_is_a_file(user: User) -> None:
    user.state.rmdir()
    user.state.write_bytes(b"no folder")
    done = user.ctx("truncate", "-n", "1", input=LINES)
    assert done == (CUT, WARNING + b"Not a directory\n", 0)
    assert user.state.read_bytes() == b"no folder"


@not_as_root
def test_a_folder_that_cannot_be_written(user: User) -> None:
    folder = user.work / "locked"
    folder.mkdir(mode=0o500)
    done = user.ctx("truncate", "-n", "1", "--spill-dir", "locked", input=LINES)
    assert done == (CUT, WARNING + b"Permission denied\n", 0)


@not_as_root
def test_a_folder_that_cannot_be_listed(user: User) -> None:
    """It can be written, so the text is saved; only what is old cannot be found."""
    folder = user.work / "blind"
    folder.mkdir(mode=0o300)
    done = user.ctx("truncate", "-n", "1", "--spill-dir", "blind", input=LINES)
    folder.chmod(0o700)
    (saved,) = folder.glob("*")
    assert saved.read_bytes() == LINES
    assert (done.err, done.code) == (b"", 0)


def test_quiet_silences_the_warning_not_the_notice(user: User) -> None:
    done = user.ctx("truncate", "-q", "-n", "1", input=LINES, env={"XDG_STATE_HOME": "/dev/null"})
    assert done == (CUT, b"", 0)


def test_json_says_so_too(user: User) -> None:
    done = user.ctx("truncate", "--json", "-n", "1", input=LINES, env={"XDG_STATE_HOME": "/dev/null"})
    found = json.loads(done.out)
    assert found["fullOutputPath"] is None
    assert found["notice"] == "[Showing lines 3000-3000 of 3000. Full output not saved]"
    assert done.err == WARNING + b"Not a directory\n"


def test_nobody_is_warned_about_what_is_not_needed(user: User) -> None:
    """Three megabytes that fit go to the disk while they might not; that they could not is no news."""
    data = b"x" * (3 << 20)
    done = user.ctx("truncate", "-c", "none", "-n", "5", input=data, env={"XDG_STATE_HOME": "/dev/null"})
    assert done == (data, b"", 0)


def test_one_warning_for_a_large_input(user: User) -> None:
    done = user.ctx("truncate", "-n", "1", input=LINES * 200, env={"XDG_STATE_HOME": "/dev/null"})
    assert done.err == WARNING + b"Not a directory\n"
    assert done.out.startswith(b"line 2999\n\n[Showing lines 600000-600000 of 600000. Full output not saved]")


def test_without_home_and_xdg(user: User) -> None:
    """The user may have no entry in the password file either, as in a container: nothing is made in the work folder."""
    done = user.ctx("truncate", "-n", "1", input=LINES, env={"XDG_STATE_HOME": None, "HOME": "nowhere"})
    assert done == (CUT, WARNING + b"neither HOME nor XDG_STATE_HOME is set\n", 0)
    assert list(user.work.iterdir()) == []


def limit_file_size() -> None:
    """Let no file grow beyond a page: the disk is full early."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_t15_half_a_text_is_not_called_the_full_one(user: User) -> None:
    done = user.ctx("truncate", "-n", "1", input=LINES, preexec_fn=limit_file_size)
    assert done == (CUT, WARNING + b"File too large\n", 0)
    assert user.spills == []


def test_a_named_file_that_cannot_be_finished_stays(user: User) -> None:
    """It is the user's; it might be a device."""
    done = user.ctx("truncate", "-n", "1", "--spill", "saved", input=LINES, preexec_fn=limit_file_size)
    assert done == (CUT, WARNING + b"File too large\n", 0)
    assert (user.work / "saved").read_bytes() == LINES[:4096]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 64 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@as_root
@linux_only
def test_a_full_disk(user: User, small_disk: Path) -> None:
    data = LINES * 20
    done = user.ctx("truncate", "-n", "1", "--spill-dir", str(small_disk), input=data)
    assert done.out == CUT.replace(b"3000", b"60000")
    assert (done.err, done.code) == (WARNING + b"No space left on device\n", 0)
    assert list(small_disk.iterdir()) == [], "half a text is none, and the room is free again"


@as_root
@linux_only
def test_a_disk_full_of_old_spills_is_cleaned_first(user: User, small_disk: Path) -> None:
    old = make_spill(small_disk, 1, age=100 * DAY)
    old.write_bytes(b"x" * 60_000)
    os.utime(old, (0, 0))
    done = user.ctx("truncate", "-n", "1", "--spill-dir", str(small_disk), input=LINES)
    assert (done.err, done.code) == (b"", 0)
    (saved,) = small_disk.iterdir()
    assert saved.read_bytes() == LINES


# -- where the user says ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"a\n", LINES, LONG, COLOURED], ids=len)
@pytest.mark.parametrize("options", [[], ["--head", "-n", "3"], ["--json"], ["--notice", "none"]], ids=str)
def test_a_named_file_has_all_of_it_cut_or_not(user: User, data: bytes, options: list[str]) -> None:
    done = user.ctx("truncate", "--spill", "saved", *options, input=data)
    assert (done.err, done.code) == (b"", 0)
    assert (user.work / "saved").read_bytes() == data
    assert user.spills == []


def test_a_named_file_is_named_in_full(user: User) -> None:
    done = user.ctx("truncate", "-n", "1", "--spill", "saved", input=LINES)
    assert done.out == CUT.replace(b"Full output not saved", f"Full output: {user.work}/saved".encode())


def test_a_named_file_is_replaced_and_a_link_followed(user: User) -> None:
    target = user.file("target", b"old and longer than what is new" * 10)
    (user.work / "link").symlink_to(target)
    assert user.ctx("truncate", "-n", "1", "--spill", "link", input=b"a\nb\n").code == 0
    assert target.read_bytes() == b"a\nb\n"


def test_a_named_file_of_an_input_that_is_a_file(user: User) -> None:
    user.file("text", LINES)
    done = user.ctx("truncate", "-n", "1", "--spill", "saved", "text")
    assert (user.work / "saved").read_bytes() == LINES
    assert f"Full output: {user.work}/saved]".encode() in done.out


def test_a_named_file_is_whole_even_if_the_input_is_read_from_its_end(user: User) -> None:
    user.file("text", LINES * 10)
    user.ctx("truncate", "-n", "1", "--notice", "none", "--spill", "saved", "text")
    assert (user.work / "saved").read_bytes() == LINES * 10


@pytest.mark.parametrize("keep", ["--tail", "--head"])
def test_a_named_file_is_whole_although_the_reader_left(user: User, keep: str) -> None:
    data = LINES * 100
    user.file("text", data)
    script = f'cat text | ctx truncate {keep} -n none -c 1M --spill saved | head -n 1; echo "${{PIPESTATUS[*]:0:2}}"'
    assert user.sh(script).out.endswith(b"\n0 141\n")
    assert (user.work / "saved").read_bytes() == data


@pytest.mark.parametrize("how", ["the same name", "another name", "a link", "a hard link", "standard input"])
def test_a_named_file_is_never_the_input(user: User, how: str) -> None:
    path = user.file("text", LINES)
    other = user.work / "other"
    words = ["truncate", "-n", "1", "--spill", "other", "text"]
    if how == "the same name":
        words[4] = "text"
    elif how == "another name":
        words[4] = f"{user.work}/../work/text"
    elif how == "a link":
        other.symlink_to("text")
    elif how == "a hard link":
        other.hardlink_to(path)
    else:
        words = ["truncate", "-n", "1", "--spill", "text"]
    with path.open("rb") as file:
        done = user.ctx(*words, stdin=file)
    name = words[4]
    assert done == (b"", f"ctx truncate: --spill {name} would overwrite the input\n".encode(), 2)
    assert path.read_bytes() == LINES


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--spill", "a", "--spill-dir", "b"], b"--spill FILE and --spill-dir do not go together"),
        (["--spill", "a", "--head", "--early-exit"], b"--spill FILE and --early-exit do not go together"),
        (["--spill", "a", "text", "text"], b"--spill FILE takes one input"),
        (["--spill", "-"], b"--spill needs the name of a file, not '-'"),
    ],
)
def test_what_does_not_go_together(user: User, words: list[str], why: bytes) -> None:
    user.file("text", LINES)
    assert user.ctx("truncate", *words, input=LINES) == (b"", b"ctx truncate: " + why + b"\n", 2)
    assert sorted(path.name for path in user.work.iterdir()) == ["text"]


def test_a_named_folder_is_no_file(user: User) -> None:
    done = user.ctx("truncate", "-n", "1", "--spill", str(user.home), input=LINES)
    assert done == (CUT, WARNING + b"Is a directory\n", 0)


def test_t17_never_saves_nothing(user: User) -> None:
    done = user.ctx("truncate", "-n", "1", "--spill", "never", input=LINES)
    assert done == (CUT, b"", 0)
    assert list(user.state.iterdir()) == []


def test_a_device_has_no_text_to_go_back_to(user: User) -> None:
    done = user.ctx("truncate", "-n", "1", "--spill", "/dev/null", input=LINES)
    assert done == (CUT, b"", 0)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@needs_dev_fd
def test_a_process_substitution_gets_it_all(user: User) -> None:
    done = user.sh("seq 3000 | ctx truncate -n 1 --spill >(md5sum > sum) && sleep 0.1 && seq 3000 | md5sum")
    eventually(lambda: (user.work / "sum").read_bytes() == done.out[-36:])
    assert done.out.startswith(b"3000\n\n[Showing lines 3000-3000 of 3000. ")
    assert b"/dev/fd" not in done.out, "that name means nothing to anybody else"


def test_a_reader_of_the_full_text_that_leaves_is_a_warning(user: User) -> None:
    os.mkfifo(user.work / "fifo")
    running = user.start_ctx("truncate", "-n", "1", "--spill", "fifo", stdin=subprocess.PIPE)
    os.close(os.open(user.work / "fifo", os.O_RDONLY))
    assert finish(running, LINES) == (CUT, WARNING + b"Broken pipe\n", 0)
    assert (user.work / "fifo").is_fifo()


# -- which inputs ----------------------------------------------------------------------------------------------------


def test_a_file_names_itself(user: User) -> None:
    user.file("text", LINES)
    done = user.ctx("truncate", "-n", "1", "text")
    assert done.out == CUT.replace(b"Full output not saved", b"Full output: text")
    assert list(user.state.iterdir()) == []


def test_a_fifo_by_name_gets_a_spill(user: User) -> None:
    os.mkfifo(user.work / "fifo")
    running = user.start_ctx("truncate", "-n", "1", "fifo")
    (user.work / "fifo").write_bytes(LINES)
    done = finish(running)
    assert done.out == CUT.replace(b"Full output not saved", f"Full output: {user.spill}".encode())
    assert user.spill.read_bytes() == LINES


@needs_dev_fd
def test_a_process_substitution_as_input_gets_a_spill(user: User) -> None:
    done = user.sh("ctx truncate -n 1 <(seq 3000)")
    assert done.out == f"3000\n\n[Showing lines 3000-3000 of 3000. Full output: {user.spill}]\n".encode()
    assert user.spill.read_bytes() == b"".join(b"%d\n" % number for number in range(1, 3001))


@needs_dev_fd
@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0"])
def test_a_descriptor_by_name_gets_a_spill(user: User, name: str) -> None:
    """Its name means something else, or nothing, to whoever reads the notice."""
    path = user.file("text", LINES)
    with path.open("rb") as file:
        done = user.ctx("truncate", "-n", "1", name, stdin=file)
    assert f"Full output: {user.spill}]".encode() in done.out
    assert user.spill.read_bytes() == LINES


def test_each_of_several_inputs_says_where_its_own_text_is(user: User) -> None:
    user.file("text", LINES)
    done = user.ctx("truncate", "-n", "1", "text", "-", "text", input=LINES)
    cuts = [b"line 2999\n\n[Showing lines 3000-3000 of 3000. Full output: %s]\n" % place
            for place in (b"text", str(user.spill).encode(), b"text")]  # fmt: skip
    assert done.out == b"==> text <==\n%s\n==> standard input <==\n%s\n==> text <==\n%s" % tuple(cuts)
    assert user.spill.read_bytes() == LINES


@pytest.mark.parametrize(
    "name", [b"with space", b"new\nline", b"caf\xe9", b"it's", "naïve漢".encode(), b"a\tb", b"$(x)"]
)
def test_t14_a_shell_can_read_the_name_back(user: User, name: bytes) -> None:
    user.file(name, LINES)
    done = user.ctx("truncate", "-n", "1", name)
    assert done.out.count(b"\n") == 3, "the notice is one line"
    said = done.out.removesuffix(b"]\n").partition(b"Full output: ")[2]
    if said.startswith(b"$'"):
        assert user.sh(f"printf %s {os.fsdecode(said)}").out == name
    else:
        assert said == name
    found = json.loads(user.ctx("truncate", "-n", "1", "--json", name).out)
    try:
        assert found["fullOutputPath"] == name.decode()
    except UnicodeDecodeError:
        assert found["fullOutputPath"].encode() == said
    assert found["notice"].encode() in done.out


def test_the_spill_is_there_when_its_name_is(user: User) -> None:
    running = user.start_ctx("truncate", "-n", "1", stdin=subprocess.PIPE)
    assert running.stdin is not None and running.stdout is not None
    running.stdin.write(LINES)
    running.stdin.close()
    running.stdin = None
    said = read_until(running.stdout.fileno(), b"]\n")
    assert Path(os.fsdecode(said.removesuffix(b"]\n").partition(b"Full output: ")[2])).read_bytes() == LINES
    assert finish(running).code == 0
