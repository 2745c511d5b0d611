"""The command line: its commands, and the one line and exit status of every error."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Annotated

import typer

from reticent import __version__
from reticent.cli import (
    audit,
    bundles,
    demo,
    fit,
    fleet,
    ledger,
    plan,
    radius,
    service,
)
from reticent.core.errors import ReticentError
from reticent.core.extras import missing_extra

try:
    from typer.exceptions import Abort, Exit, TyperException
except ModuleNotFoundError:  # typer below 0.28 raises click's
    from click.exceptions import Abort, Exit  # type: ignore[assignment]
    from click.exceptions import ClickException as TyperException  # type: ignore[assignment]

TRACEBACK_VARIABLE = "RETICENT_TRACEBACK"
"""Set to 1, this environment variable lets a traceback through; one may show private values."""

_INTERNAL = 70
_INTERRUPTED = 130

app = typer.Typer(
    name="reticent",
    help="Release what a neural network computed from private data, with a guarantee that can "
    "be proved.\n\n"
    "The exit status is 0, or the code of the error: reticent.core.errors lists them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(demo.app, name="demo")
app.add_typer(ledger.ledger_app, name="ledger")
app.add_typer(service.keys_app, name="keys")
app.command()(fit.methods)
app.command()(fit.fit)
app.command()(fit.schema)
app.add_typer(audit.audit_app, name="audit")
app.add_typer(audit.attack_app, name="attack")
app.command()(plan.plan)
app.command()(plan.plan_inputs)
app.command()(radius.radius)
app.command()(bundles.certify)
app.command()(bundles.release)
app.command()(bundles.predict)
app.command()(bundles.card)
app.command()(service.serve)
app.add_typer(fleet.shuffle_app, name="shuffle")
app.add_typer(fleet.aggregate_app, name="aggregate")
app.add_typer(service.service_app, name="service")
app.command()(service.train_model)
app.command()(bundles.sign)
app.command()(bundles.verify)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
) -> None:
    """Release what a neural network computed from private data, with a guarantee that can be
    proved.
    """
    if version:
        _show_version()
        raise Exit(0)


def run(arguments: Sequence[str]) -> int:
    """Run a command line. Return 0, or the code of the error that was printed.

    Example:
        >>> run(["--version"])
        reticent 0.1.0
        0
    """
    if list(arguments) == ["--version"]:
        # Imported here: pydantic takes several times as long to import as typer itself.
        _show_version()
        return 0
    try:
        status = app(args=list(arguments), prog_name="reticent", standalone_mode=False)
    except Exit as stop:
        return stop.exit_code
    except (Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except TyperException as error:
        if error.format_message().startswith("Usage:"):  # a group of commands without a command
            print(error.format_message())
            return error.exit_code
        usage = getattr(error, "ctx", None)
        hint = f"; try: {usage.command_path} --help" if usage is not None else ""
        # pydantic puts a word of its own before the validator's message.
        reason = error.format_message().replace("Value error, ", "").rstrip(".")
        return _complain(f"{reason}{hint}", error.exit_code)
    except ReticentError as error:
        return _complain(str(error), error.code)
    except Exception as error:
        missing = missing_extra(error) if isinstance(error, ModuleNotFoundError) else None
        if missing is not None:
            return _complain(str(missing), missing.code)
        if os.environ.get(TRACEBACK_VARIABLE) == "1":
            raise
        # Neither message nor traceback: a library may have put a private value into either.
        return _complain(
            f"internal error ({type(error).__name__}); nothing more was released. "
            f"{TRACEBACK_VARIABLE}=1 shows the traceback, "
            "which may hold private values",
            _INTERNAL,
        )
    return status if isinstance(status, int) else 0


def main() -> None:
    """Run the ``reticent`` command.

    SIGTERM ends it as Ctrl-C does: half-written files are removed first.
    """
    told = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal told
        told = True
        signal.signal(number, signal.SIG_IGN)  # a second signal would cut the cleaning short
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, stop)
    status = run(sys.argv[1:])
    if told:  # the sender sees that its signal was obeyed: systemd calls other statuses a failure
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    sys.exit(status)


def _show_version() -> None:
    typer.echo(f"reticent {__version__}")


def _complain(message: str, status: int) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return status
