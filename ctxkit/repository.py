"""Git, as far as folders show it: the top of a repository, and the checkout that a worktree belongs to."""

from __future__ import annotations

import posixpath

from ctxkit.frontmatter import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxkit.found import Disk


def upward(folder: str, top: str = "/") -> list[str]:
    """Return an absolute folder and those above it, up to `top`."""
    folders = [folder]
    while folders[-1] not in (top, "/"):
        folders.append(posixpath.dirname(folders[-1]))
    return folders


def find_top(folder: str, disk: Disk) -> str | None:
    """Return the top of the repository or worktree that a folder is in: the nearest that has a `.git`."""
    for above in upward(folder):
        if disk.look(posixpath.join(above, ".git")).kind in ("file", "folder"):
            return above
    return None


def main_checkout(top: str, disk: Disk) -> str | None:
    """Return the folder of the main checkout, if `top` is that of a worktree and its repository is not bare.

    A worktree's `.git` is a file that names its part of the repository, and there `commondir` names the whole. A
    submodule has no `commondir`.
    """
    link = disk.read(posixpath.join(top, ".git"))
    named = decode(link.data).partition("\n")[0]
    if not named.startswith("gitdir: "):
        return None
    part = posixpath.join(top, named.removeprefix("gitdir: ").strip())
    common = disk.read(posixpath.join(part, "commondir"))
    if common.kind != "file":
        return None
    whole = posixpath.normpath(posixpath.join(part, decode(common.data).strip()))
    return posixpath.dirname(whole) if posixpath.basename(whole) == ".git" else None
