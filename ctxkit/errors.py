"""The errors ctx raises anywhere and catches once, in `__main__`. Each kind has an exit code (DESIGN "Conventions")."""


class CtxError(Exception):
    """Say what went wrong in one line, and at most one line of what to do about it."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class OutputError(CtxError):
    """The result could not be written (a full disk, a closed descriptor); exit 1, as coreutils do."""


class UsageError(CtxError):
    """The command line asks for something that does not exist or does not go together; exit 2."""

    exit_code = 2


class InputError(CtxError):
    """An input could not be read or is not what it should be; exit 3.

    `source` is the name of the input, `line` is 1-based; the printed form is `source:line: what`.
    """

    exit_code = 3

    def __init__(self, what: str, *, source: str = "", line: int | None = None, hint: str = "") -> None:
        place = f"{source}:" if source else ""
        if line is not None:
            place += f"{line}:"
        super().__init__(f"{place} {what}" if place else what, hint)
        self.source = source
        self.line = line


class PluginError(CtxError):
    """A summarizer, a hook or a plug-in failed; exit 4."""

    exit_code = 4


class VocabularyError(PluginError):
    """An encoding's vocabulary is not shipped, not cached, and cannot be had; exit 4."""


class StateError(CtxError):
    """The world changed meanwhile: a file was written by somebody else, a lock is held; exit 5."""

    exit_code = 5


class ChangedError(StateError):
    """A file was changed since it was read; exit 5."""


class CommandError(CtxError):
    """A command could not be started; exit 127 if there is none of that name, 126 if it cannot be run (env(1))."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
