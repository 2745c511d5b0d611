#!/usr/bin/env python3
"""One command from a fresh clone: makes ``.venv`` with the pinned packages, then runs what was
asked in it.

python3 run.py demo posthoc      any `reticent` command
python3 run.py test              all tests (add pytest arguments, e.g. -m "not slow", tests/core)
python3 run.py check             lint, format, types and import contracts
python3 run.py setup             only make the environment

Needs Python 3.11 or newer and nothing else. The environment is made once, and again when
constraints.txt or pyproject.toml changes. RETICENT_VENV names another folder for it. (Standard
library only, and written so that an old Python can read far enough to say what it lacks.)
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time

MINIMUM = (3, 11)
ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.abspath(os.environ.get("RETICENT_VENV") or os.path.join(ROOT, ".venv"))
BIN = os.path.join(VENV, "Scripts" if os.name == "nt" else "bin")
PYTHON = os.path.join(BIN, "python.exe" if os.name == "nt" else "python")
STAMP = os.path.join(VENV, "reticent-setup.sha256")
LOG = os.path.join(VENV, "reticent-setup.log")
CONSTRAINTS = os.path.join(ROOT, "constraints.txt")
CHECKS = (
    ("lint", ["ruff", "check", "."]),
    ("format", ["ruff", "format", "--check", "."]),
    ("types", ["mypy"]),
    ("contracts", ["lint-imports"]),
)


def main(arguments):
    """Exit status of the command that ``arguments`` ask for."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(__doc__.strip())
        return 0
    refuse_old_python()
    make_environment()
    name, rest = arguments[0], arguments[1:]
    if name == "setup":
        print("The environment is ready: " + VENV)
        return 0
    if name == "test":
        return run(test_command(rest), one_thread_each=True)
    if name == "check":
        return run_checks()
    return run([os.path.join(BIN, "reticent"), *arguments], stay=True)


def refuse_old_python():
    """Stop with one clear line when this Python cannot run reticent."""
    if sys.version_info < MINIMUM:
        found = "{}.{}.{} ({})".format(*sys.version_info[:3], sys.executable)
        newer = next(
            (name for name in ("python3.13", "python3.12", "python3.11") if shutil.which(name)),
            None,
        )
        advice = (
            f"Try: {newer} run.py {' '.join(sys.argv[1:])}"
            if newer
            else "Install Python 3.11 and run this again with it."
        )
        sys.exit(f"reticent needs Python 3.11 or newer; this is {found}. {advice}")
    try:
        import ensurepip  # noqa: F401  (Debian ships Python without it)
        import venv  # noqa: F401
    except ImportError:
        version = "{}.{}".format(*sys.version_info[:2])
        sys.exit(
            f"This Python ({sys.executable}) cannot make virtual environments: the module venv "
            "or ensurepip is missing. "
            f"On Debian or Ubuntu: apt install python{version}-venv"
        )


def wanted_stamp():
    """Hash of all that decides what the environment holds."""
    digest = hashlib.sha256(repr((sys.version_info[:3], ROOT)).encode())
    for path in (CONSTRAINTS, os.path.join(ROOT, "pyproject.toml"), os.path.abspath(__file__)):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def make_environment():
    """Make or refresh the environment, unless its stamp says that it is the wanted one already."""
    stamp = wanted_stamp()
    if os.path.exists(STAMP) and os.path.exists(PYTHON):
        with open(STAMP) as file:
            if file.read().strip() == stamp:
                return
        os.remove(STAMP)
    if os.path.exists(VENV) and not os.path.exists(os.path.join(VENV, "pyvenv.cfg")):
        sys.exit(
            f"{VENV} exists and is no virtual environment; move it away, or name another "
            "folder in RETICENT_VENV."
        )
    print(
        f"Setting up {VENV} with the versions in constraints.txt (once; up to a few minutes)",
        flush=True,
    )
    started = time.monotonic()
    if subprocess.call([sys.executable, "-m", "venv", "--clear", VENV]) != 0:
        sys.exit(
            f"Could not make a virtual environment in {VENV}; is the folder writable, is the "
            "disk full?"
        )
    open(LOG, "w").close()
    install(["hatchling", "editables"])
    install(["--no-build-isolation", "--editable", f"{ROOT}[dev]"])
    with open(STAMP, "w") as file:
        file.write(stamp + "\n")
    print(f"Set up in {time.monotonic() - started:.0f} s", flush=True)


def install(arguments):
    """Run pip with the constraints; show one line per package, keep the whole output in the log."""
    # Compiling every module of torch takes minutes; Python compiles those that are used when they
    # are first imported.
    quiet = ["--disable-pip-version-check", "--no-input", "--no-compile"]
    command = [PYTHON, "-m", "pip", "install", *quiet, "-c", CONSTRAINTS, *arguments]
    live = sys.stdout.isatty()
    tail = []
    pipe = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "encoding": "utf-8",
        "errors": "replace",
    }
    with open(LOG, "a", encoding="utf-8") as log, subprocess.Popen(command, **pipe) as process:
        for line in process.stdout:
            log.write(line)
            log.flush()
            tail = [*tail, line.rstrip()][-15:]
            if line.startswith(("Collecting", "Installing collected", "Building")):
                message = "  " + line.strip()[:90]
                print(
                    "\r\033[K" + message if live else message, end="" if live else "\n", flush=True
                )
        if live:
            print("\r\033[K", end="", flush=True)
        if process.wait() != 0:
            print("\n".join(tail), file=sys.stderr)
            sys.exit(
                "pip could not install the pinned packages (its last lines are above, all of "
                f"them in {LOG}). "
                "Check the network and pip's own settings (pip config list), then run the same "
                "command again."
            )


def test_command(rest):
    """The pytest command: several processes, unless the caller chose otherwise."""
    processes = (
        []
        if any(word.startswith(("-n", "--numprocesses", "--pdb")) for word in rest)
        else ["-n", "logical"]
    )
    return [PYTHON, "-m", "pytest", *processes, *rest]


def run_checks():
    """Run every check, name each result, and fail if one failed."""
    failed = [
        title
        for title, command in CHECKS
        if run([os.path.join(BIN, command[0]), *command[1:]]) != 0
    ]
    print(
        "checks failed: " + ", ".join(failed)
        if failed
        else "checks passed: " + ", ".join(title for title, _ in CHECKS)
    )
    return 1 if failed else 0


def run(command, stay=False, one_thread_each=False):
    """Exit status of ``command``; in the repository root unless ``stay``."""
    environment = dict(
        os.environ, PATH=BIN + os.pathsep + os.environ.get("PATH", ""), VIRTUAL_ENV=VENV
    )
    if one_thread_each:
        # Test processes already fill the cores; threads inside each of them only wait for one
        # another.
        environment.setdefault("OMP_NUM_THREADS", "1")
    return subprocess.call(command, cwd=None if stay else ROOT, env=environment)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
