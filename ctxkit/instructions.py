"""Instruction files: which of them apply in a folder, in which order, and why each was taken or not (Pi §9.3).

Where they are looked for depends on the agent; what becomes of what is found there does not.
"""

from __future__ import annotations

import posixpath
from typing import NamedTuple

from ctxkit import frontmatter, imports, repository
from ctxkit.clean import to_utf8
from ctxkit.found import Finding
from ctxkit.frontmatter import decode
from ctxkit.markup import one_line
from ctxkit.truncate import format_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal, TypeAlias

    from ctxkit.found import Disk, Found
    from ctxkit.profiles import Profile

    Identity: TypeAlias = tuple[int, int] | None


class Instruction(NamedTuple):
    """An instruction file that was found: what of it is kept, and why."""

    path: str
    scope: str  # managed, user, project
    size: int  # of the file, in bytes
    text: str  # what goes into the prompt, "" if nothing does
    kept: bool
    reason: str

    def without(self, reason: str) -> Instruction:
        """Return the file as one that is left out."""
        return self._replace(text="", kept=False, reason=reason)


class Instructions(NamedTuple):
    """The files that were found, farthest first, and what a person should know about them."""

    files: list[Instruction]
    findings: list[Finding]


class Place(NamedTuple):
    """A folder and what is looked for in it."""

    folder: str
    scope: str
    groups: tuple[tuple[str, ...], ...]
    rules: str = ""  # a folder of rules, loaded after the first group


def places(profile: Profile, folders: list[str], agent_folder: str, home: str) -> list[Place]:
    """Return where a profile looks, farthest first; `folders` are those from the working folder upwards."""
    user = tuple(tuple(name.replace("~", home, 1) for name in group) for group in profile.user)
    rules = ("rules", ".claude/rules") if profile.rules else ("", "")
    return [
        *(Place("/", "managed", ((path,),)) for path in profile.managed),
        Place(agent_folder, "user", user, rules[0]),
        *(Place(folder, "project", profile.project, rules[1]) for folder in reversed(folders)),
    ]


def folders_of(profile: Profile, cwd: str, stop_at: Literal["root", "git"] | None, disk: Disk) -> list[str]:
    """Return the folders whose files apply, from the working folder upwards."""
    git = repository.find_top(cwd, disk) if (stop_at or profile.top) == "git" else None
    if git is None and not stop_at and profile.top_without_git == "here":
        return [cwd]
    return repository.upward(cwd, git or "/")


def find(profile: Profile, every: list[Place], home: str, disk: Disk) -> Instructions:
    """Find the instruction files of some places: each file once, under the path where it is met first."""
    return _Search(profile, every, home, disk).result()


class _Search:
    """One search: what was met so far."""

    __slots__ = ("disk", "files", "findings", "home", "met", "outdone", "places", "profile", "project")

    def __init__(self, profile: Profile, every: list[Place], home: str, disk: Disk) -> None:
        self.profile, self.places, self.home, self.disk = profile, every, home, disk
        self.files: list[Instruction] = []
        self.findings: list[Finding] = []
        self.met: dict[Identity, str] = {}
        folders = [place.folder for place in every if place.scope == "project"]
        self.project = repository.find_top(folders[-1], disk) or folders[-1]
        self.outdone = self._outdone_by_worktree(folders)

    def result(self) -> Instructions:
        for place in self.places:
            before = len(self.findings)
            chosen = []
            for number, group in enumerate(place.groups):
                chosen += [self._first(place, group)]
                if number == 0 and place.rules:
                    self._rules(place)
            if not any(chosen) and len(self.findings) == before:
                self._near_misses(place)
        if self.profile.contained:
            self._drop_contained()
        return Instructions(self.files, self.findings)

    def _first(self, place: Place, group: tuple[str, ...]) -> bool:
        """Take the first file of a group that is one; list the others that are there."""
        winner = ""
        for path in self._there(place, group):
            if winner:
                found = self.disk.read(path)
                if found.kind == "file":
                    self._skip(found, place.scope, f"{posixpath.basename(winner)} comes first")
                continue
            found = self.disk.read(path)
            why = self._unusable(found)
            if why:
                self._skip(found, place.scope, why)
                continue
            winner = path
            if path in self.outdone:
                self._skip(found, place.scope, f"the worktree has its own: {self.outdone[path]}")
            else:
                self._take(found, place.scope, "first of its names here" if len(group) > 1 else "its name")
        return bool(winner)

    def _there(self, place: Place, group: tuple[str, ...]) -> Iterator[str]:
        """Yield the paths of a group that are there in exactly this spelling, whatever the file system thinks."""
        for name in group:
            path = posixpath.join(place.folder, name)
            folder, base = posixpath.split(path)
            listed = self.disk.names(folder)
            if base in listed or (not listed and self.disk.look(path).kind != "missing"):
                yield path

    def _unusable(self, found: Found) -> str:
        """Say why a file gives way to the next name, and warn of what looks like a mistake."""
        if found.kind != "file":
            self._warn(found.path, None, f"not read: {found.why}")
            return found.why
        text = decode(found.data).strip()
        if not text:
            return "empty"
        if len(text) < 256 and len(text.split()) == 1 and not text.startswith("@"):
            other = self.disk.look(posixpath.join(posixpath.dirname(found.real), text))
            if other.kind == "file" and other.identity != found.identity:
                self._warn(found.path, 1, f"not read: it only names {text}, as a link that git wrote as text does")
                return f"only names {text}"
        return ""

    def _take(self, found: Found, scope: str, reason: str, text: str | None = None) -> None:
        """Take a file and what it imports, unless it was met before."""
        if found.identity in self.met:
            self._skip(found, scope, f"the same file as {self.met[found.identity]}")
            return
        self.met[found.identity] = found.path
        content = decode(found.data)
        kept = content if text is None else text
        self.files.append(Instruction(found.path, scope, len(found.data), kept, True, reason))
        for each in imports.follow(found, content, self.home, self.disk) if self.profile.imports else ():
            if isinstance(each, Finding):
                self.findings.append(each)
                continue
            if scope == "project" and not self._is_inside(each.file.real):
                self._warn(each.importer, each.line, f"imports a file outside of the project: {each.file.path}")
            self._take_import(each, scope)

    def _take_import(self, found: imports.Import, scope: str) -> None:
        if found.file.identity in self.met:
            self._skip(found.file, scope, f"the same file as {self.met[found.file.identity]}")
            return
        self.met[found.file.identity] = found.file.path
        reason = f"imported by {found.importer}:{found.line}"
        text = decode(found.file.data)
        self.files.append(Instruction(found.file.path, scope, len(found.file.data), text, True, reason))

    def _is_inside(self, path: str) -> bool:
        """Say whether a file is below the top of the project, by whatever links."""
        top = self.disk.look(self.project).identity
        return any(self.disk.look(folder).identity == top for folder in repository.upward(posixpath.dirname(path)))

    def _skip(self, found: Found, scope: str, reason: str) -> None:
        self.files.append(Instruction(found.path, scope, len(found.data), "", False, reason))

    def _warn(self, path: str, line: int | None, what: str) -> None:
        self.findings.append(Finding(path, line, what))

    def _rules(self, place: Place) -> None:
        """Take the rules of a folder, those that are for some files only excepted."""
        for found in self._rule_files(posixpath.join(place.folder, place.rules), set()):
            if found.kind != "file":
                self._warn(found.path, None, f"not read: {found.why}")
                continue
            meta = frontmatter.split(decode(found.data))
            paths = meta.fields.get("paths")
            if paths:
                patterns = ", ".join(str(each) for each in paths) if isinstance(paths, list) else str(paths)
                self._skip(found, place.scope, f"only for files that match {patterns}")
            elif meta.body.strip():
                self._take(found, place.scope, "a rule", meta.body)

    def _rule_files(self, folder: str, visited: set[Identity]) -> Iterator[Found]:
        for name in self.disk.names(folder):
            found = self.disk.look(posixpath.join(folder, name))
            if found.kind == "folder" and found.identity not in visited:
                visited.add(found.identity)
                yield from self._rule_files(found.path, visited)
            elif found.kind != "folder" and name.endswith(".md"):
                yield self.disk.read(found.path)

    def _near_misses(self, place: Place) -> None:
        """Warn of names that are right but for upper and lower case."""
        for group in place.groups:
            for folder in dict.fromkeys(posixpath.dirname(posixpath.join(place.folder, name)) for name in group):
                wanted = {posixpath.basename(n).casefold(): posixpath.basename(n) for n in reversed(group)}
                exact = {posixpath.basename(name) for name in group}
                for name in self.disk.names(folder):
                    if name not in exact and name.casefold() in wanted:
                        path = posixpath.join(folder, name)
                        self._warn(path, None, f"not read: its name is not {wanted[name.casefold()]}")

    def _outdone_by_worktree(self, folders: list[str]) -> dict[str, str]:
        """Return the files of a main checkout that a worktree inside it has, too: both are the same rules."""
        main = repository.main_checkout(self.project, self.disk)
        if main is None:
            return {}
        whole = self.disk.look(main).identity
        above = [each for each in folders if each != self.project and self.disk.look(each).identity == whole]
        outdone = {}
        for group in self.profile.project:
            paths = ((name, self.disk.read(posixpath.join(self.project, name))) for name in group)
            own = next((name for name, found in paths if found.kind == "file" and found.data.strip()), None)
            if own is not None:
                outdone.update({posixpath.join(folder, own): posixpath.join(self.project, own) for folder in above})
        return outdone

    def _drop_contained(self) -> None:
        """Leave out a file whose paragraphs are all in another one."""
        paragraphs = [_paragraphs(file.text) for file in self.files]
        for number, file in enumerate(self.files):
            for other, whole in enumerate(self.files):
                first_of_equals = paragraphs[number] == paragraphs[other] and number < other
                if number == other or first_of_equals or not (file.kept and whole.kept):
                    continue
                if paragraphs[number] <= paragraphs[other]:
                    self.files[number] = file.without(f"all of it is in {whole.path}")
                    break


def _paragraphs(text: str) -> set[str]:
    return {" ".join(part.split()) for part in text.split("\n\n")} - {""}


def limit(files: list[Instruction], budget: int | None) -> Instructions:
    """Keep the files of a project within a number of bytes, in the order of the prompt; the last is cut at a line."""
    left = budget
    result = Instructions([], [])
    for file in files:
        data = to_utf8(file.text)
        if left is None or not file.kept or file.scope != "project":
            result.files.append(file)
        elif len(data) <= left:
            result.files.append(file)
            left -= len(data)
        else:
            part = data[: data.rfind(b"\n", 0, left) + 1]
            what = f"{format_size(len(part))} of {format_size(len(data))} kept" if part else "left out"
            reason = f"{what}: the files of a project have {budget} bytes together"
            result.findings.append(Finding(file.path, None, reason))
            mark = f"[... {format_size(len(data) - len(part))} of {one_line(file.path)} left out ...]\n"
            cut = file._replace(text=f"{part.decode()}{mark}", reason=f"{file.reason}; {reason}")
            result.files.append(cut if part else file.without(reason))
            left = 0
    return result
