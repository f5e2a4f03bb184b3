"""ctx: choose the lane, run the command, and turn whatever goes wrong into one message and an exit code."""

import os
import sys

from ctxkit import process
from ctxkit.cli import commands, fast
from ctxkit.errors import CtxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h


def main() -> None:
    """Run the command line of this process; never returns."""
    try:
        code = run(sys.argv[1:])
    except BrokenPipeError:
        process.die(signal.SIGPIPE)
    except KeyboardInterrupt:
        process.die(signal.SIGINT)
    except process.Killed as killed:
        process.die(killed.number)
    # Nothing is buffered and nothing is left to do: freeing it all politely would take a sixth of the whole time.
    os._exit(code)


def run(argv: list[str]) -> int:
    """Run a command line and return its exit code. The one place where errors are caught (DESIGN rule 7)."""
    try:
        if argv == ["--version"]:
            return commands.version()
        known = fast.parse(argv, os.environ)
        if known is not None:
            return commands.run(*known)
        from ctxkit.cli import app

        return app.run(argv)
    except CtxError as error:
        process.report(error)
        return error.exit_code
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        if os.environ.get("CTX_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}".replace("\n", " ")
        process.report(CtxError(f"internal error: {what}", "this is a bug in ctx; CTX_DEBUG=1 shows where"))
        return INTERNAL_ERROR


if __name__ == "__main__":
    main()
