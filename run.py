#!/usr/bin/env python3
"""One command from a fresh clone: makes an environment with locked packages, then runs what was
asked in it.

python3 run.py demo posthoc      any `reticent` command
python3 run.py test              all tests (add pytest arguments, e.g. -m "not slow", tests/core)
python3 run.py check             lint, format, types, import contracts and spelling
python3 run.py docs              the site, in build/site; a warning fails it
python3 run.py setup             only make the environment (setup light, setup lowest: the others)
python3 run.py test-light        the tests that need no torch, in an environment without it
python3 run.py test-lowest       quick tests with the lowest versions that pyproject.toml allows
python3 run.py lock              write locks/ anew after pyproject.toml changed (--upgrade: newest)

Needs Python 3.11 or newer and nothing else. `.venv` is made once, and again when locks/ or
pyproject.toml changes; test-light and test-lowest have environments of their own beside it.
RETICENT_VENV names another folder for it. (Standard library only, and written so that an old
Python can read far enough to say what it lacks.)
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

MINIMUM = (3, 11)
ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.abspath(os.environ.get("RETICENT_VENV") or os.path.join(ROOT, ".venv"))
LOCKS = os.path.join(ROOT, "locks")
PROJECT = os.path.join(ROOT, "pyproject.toml")

TORCH, TORCH_CPU, CUDA = "torch.txt", "torch-cpu.txt", "cuda.txt"
"""Files in locks/ for torch, which stands alone because its builds differ by machine: that of the
index, a CPU build that pip's own settings may offer (pip's hashes would always prefer the former
in one file), and the libraries that a CUDA build needs."""

EVERYTHING, LIGHT = "everything.txt", "light.txt"
"""Files in locks/ for all else, and for the environment without torch."""

LIGHT_EXTRAS = ("plots", "milp", "accounting", "signing", "postgres", "service", "test")
"""What the environment without torch has beside the core."""

LOWEST_EXTRAS = ("networks", "plots", "accounting", "attacks", "signing", "test")
"""What the environment of lowest versions has beside the core."""

TESTS_FAILED = 1
"""Exit status of pytest where all ran and some failed."""

SECOND_TRIES = 3
"""How many failing tests run once more: chance and load fail one or two of ten thousand."""

CUDA_LIBRARIES = re.compile(r"(nvidia|cuda)-|triton$")

CHECKS = (
    ("lint", ["ruff", "check", "."]),
    ("format", ["ruff", "format", "--check", "."]),
    ("types", ["mypy"]),
    ("contracts", ["lint-imports"]),
    ("spelling", ["codespell"]),
)


class Environment:
    """A virtual environment, and what it is made from.

    Attributes:
        folder: where it is.
        title: what it holds, in words.
        install: called with the environment once it is there and empty.
    """

    def __init__(self, folder, title, install):
        self.folder = folder
        self.title = title
        self.install = install
        self.bin = os.path.join(folder, "Scripts" if os.name == "nt" else "bin")
        self.python = os.path.join(self.bin, "python.exe" if os.name == "nt" else "python")
        self.stamp = os.path.join(folder, "reticent-setup.sha256")
        self.log = os.path.join(folder, "reticent-setup.log")

    def wanted(self):
        """Hash of all that decides what the environment holds."""
        digest = hashlib.sha256(repr((sys.version_info[:3], ROOT, self.title)).encode())
        locks = [os.path.join(LOCKS, name) for name in sorted(os.listdir(LOCKS))]
        for path in (*locks, PROJECT, os.path.abspath(__file__)):
            with open(path, "rb") as file:
                digest.update(file.read())
        return digest.hexdigest()

    def make(self):
        """Make or refresh it, unless its stamp says that it is the wanted one already."""
        stamp = self.wanted()
        if os.path.exists(self.stamp) and os.path.exists(self.python):
            with open(self.stamp) as file:
                if file.read().strip() == stamp:
                    return
            os.remove(self.stamp)
        if os.path.exists(self.folder) and not os.path.exists(
            os.path.join(self.folder, "pyvenv.cfg")
        ):
            sys.exit(
                f"{self.folder} exists and is no virtual environment; move it away, or name "
                "another folder in RETICENT_VENV."
            )
        print(
            f"Setting up {self.folder} with {self.title} (once; up to a few minutes)",
            flush=True,
        )
        started = time.monotonic()
        if subprocess.call([sys.executable, "-m", "venv", "--clear", self.folder]) != 0:
            sys.exit(
                f"Could not make a virtual environment in {self.folder}; is the folder writable, "
                "is the disk full?"
            )
        open(self.log, "w").close()
        self.install(self)
        with open(self.stamp, "w") as file:
            file.write(stamp + "\n")
        print(f"Set up in {time.monotonic() - started:.0f} s", flush=True)

    def run(self, command, stay=False, one_thread_each=False):
        """Exit status of ``command``; in the repository root unless ``stay``."""
        environment = dict(
            os.environ,
            PATH=self.bin + os.pathsep + os.environ.get("PATH", ""),
            VIRTUAL_ENV=self.folder,
        )
        if environment.pop("PYTHONDONTWRITEBYTECODE", ""):
            # Packages are installed without compiled files. A process that may write none compiles
            # all that it imports, again at every start: tests start a hundred. Whoever wants none
            # beside the sources has them beside the environments, which share them.
            environment.setdefault("PYTHONPYCACHEPREFIX", VENV + "-compiled")
        if one_thread_each:
            # Test processes already fill the cores; threads inside each of them only wait for one
            # another.
            environment.setdefault("OMP_NUM_THREADS", "1")
        return subprocess.call(command, cwd=None if stay else ROOT, env=environment)


def main(arguments):
    """Exit status of the command that ``arguments`` ask for."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(__doc__.strip())
        return 0
    refuse_old_python()
    name, rest = arguments[0], arguments[1:]
    if name == "lock":
        return renew_locks(rest)
    if name == "test-light":
        return run_tests_without_extras(light_environment(), rest)
    if name == "test-lowest":
        # Old packages call what newer ones, which they take as they are, have deprecated since.
        words = ["-W", "ignore::DeprecationWarning", *rest]
        return run_tests_without_extras(lowest_environment(), words)
    if name == "setup":
        return set_up(rest)
    full = full_environment()
    full.make()
    if name == "test":
        return run_tests(full, rest)
    if name == "check":
        return run_checks(full)
    if name == "docs":
        return full.run([full.python, "-m", "guide.build", *rest])
    return full.run([os.path.join(full.bin, "reticent"), *arguments], stay=True)


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


def full_environment():
    """What all commands but three run in."""
    return Environment(VENV, "the versions in locks/", install_everything)


def light_environment():
    """The environment without torch, one for each version of Python."""
    version = "{}.{}".format(*sys.version_info[:2])
    return Environment(f"{VENV}-light-{version}", "the versions in locks/light.txt", install_light)


def lowest_environment():
    """The environment of lowest versions."""
    title = "the lowest versions of pyproject.toml"
    return Environment(VENV + "-lowest", title, install_lowest)


def set_up(rest):
    """Make one environment, and do no more."""
    kinds = {"": full_environment, "light": light_environment, "lowest": lowest_environment}
    kind = " ".join(rest)
    if kind not in kinds:
        sys.exit(f"setup: expected nothing, light or lowest, got {kind!r}")
    made = kinds[kind]()
    made.make()
    print("The environment is ready: " + made.folder)
    return 0


def install_everything(environment):
    """Everything that is locked: torch first, then all else, then this package.

    ``--no-deps`` throughout: the locks are whole. A CPU build of torch is taken where there is one,
    and otherwise the index's build, with its libraries where it is one for CUDA.
    """
    if not has_cpu_torch(environment):
        print("  pip offers no CPU build of torch here: taking the build of the index", flush=True)
        pip_install(environment, locked(TORCH))
        pip_install(environment, locked(CUDA))
    pip_install(environment, locked(EVERYTHING))
    install_this(environment)


def has_cpu_torch(environment):
    """Whether pip could install the locked CPU build of torch."""
    pip = [environment.python, "-m", "pip", "install", "--quiet", "--no-compile"]
    return subprocess.call([*pip, *locked(TORCH_CPU)], stderr=subprocess.DEVNULL) == 0


def install_light(environment):
    """The core and the extras that need no torch."""
    pip_install(environment, locked(LIGHT))
    install_this(environment)


def install_lowest(environment):
    """The lowest versions that pyproject.toml declares; what these need in turn is the newest.

    torch is the locked CPU build where pip offers it: an older one brings gigabytes of CUDA.
    """
    lowest = lowest_versions()
    if has_cpu_torch(environment):
        del lowest["torch"]
    floors = os.path.join(environment.folder, "reticent-lowest.txt")
    with open(floors, "w") as file:
        file.write("".join(f"{name}=={version}\n" for name, version in lowest.items()))
    pip_install(environment, ["-c", floors, "hatchling", "editables"])
    package = "{}[{}]".format(ROOT, ",".join(LOWEST_EXTRAS))
    pip_install(environment, ["-c", floors, "--no-build-isolation", "--editable", package])


def install_this(environment):
    """This package itself, editable, with what is there."""
    pip_install(environment, ["--no-deps", "--no-build-isolation", "--editable", ROOT])


def locked(name):
    """pip's arguments for a file in locks/."""
    return ["--no-deps", "--require-hashes", "-r", os.path.join(LOCKS, name)]


def lowest_versions():
    """Name to lowest version of every direct dependency, optional ones included."""
    import tomllib

    with open(PROJECT, "rb") as file:
        project = tomllib.load(file)["project"]
    wanted = [*project["dependencies"]]
    for extra, requirements in project["optional-dependencies"].items():
        if extra not in ("test", "docs", "dev"):  # how old a tool may be is of no interest
            wanted += requirements
    found = [re.match(r"([A-Za-z0-9_.-]+)(?:\[.*\])?>=([0-9.]+)", each) for each in wanted]
    return {each.group(1): each.group(2) for each in found if each}


def run_tests_without_extras(environment, rest):
    """Exit status of the quick tests where some extras are not installed."""
    environment.make()
    words = ["-p", "tests.without_extras", "-m", "not slow and not browser"]
    return run_tests(environment, [*words, *rest])


def renew_locks(words):
    """Resolve pyproject.toml again, and write the files in locks/.

    What is locked stays as it is unless pyproject.toml excludes it or ``words`` ask for newer
    versions: --upgrade for all, --upgrade-package NAME for one. Every file has the hashes of all
    builds of a version, so that it serves every system, and no address of any index. The lock of
    torch's CPU build is renewed where pip offers one. Python 3.11 and newer are resolved together.
    """
    tools = Environment(VENV + "-lock", "uv", lambda made: pip_install(made, ["uv"]))
    tools.make()
    uv = [os.path.join(tools.bin, "uv"), "pip", "compile", "--quiet", "--generate-hashes"]
    uv += ["--no-header", "--no-annotate", "--universal", "--python-version", "3.11", *words]
    everything = resolved(tools, [*uv, "--extra", "dev", PROJECT])
    light = [word for extra in LIGHT_EXTRAS for word in ("--extra", extra)]
    # Both environments have the same versions of what both have.
    pins = os.path.join(tools.folder, "everything.txt")
    write(pins, everything.values())
    torch = everything.pop("torch")
    cuda = {name: everything.pop(name) for name in [*everything] if CUDA_LIBRARIES.match(name)}
    os.makedirs(LOCKS, exist_ok=True)
    write(os.path.join(LOCKS, TORCH_CPU), [cpu_build(tools, torch)])
    write(os.path.join(LOCKS, TORCH), [torch])
    write(os.path.join(LOCKS, CUDA), cuda.values())
    write(os.path.join(LOCKS, EVERYTHING), everything.values())
    lighter = resolved(tools, [*uv, *light, "--constraint", pins, PROJECT])
    write(os.path.join(LOCKS, LIGHT), lighter.values())
    print("Written: " + ", ".join(sorted(os.listdir(LOCKS))))
    return 0


def resolved(tools, command):
    """Name to all lines of each package that the resolver wrote; a package may stand there twice,
    for two versions of Python.
    """
    output = os.path.join(tools.folder, "resolved.txt")
    known = [os.path.join(LOCKS, name) for name in (TORCH, CUDA, EVERYTHING)]
    with open(output, "w") as file:  # the resolver prefers the versions that it finds here
        for path in filter(os.path.exists, known):
            with open(path) as lock:
                file.write(lock.read())
    if tools.run([*command, "--output-file", output]) != 0:
        sys.exit("The resolver failed; its reason stands above. locks/ is as it was.")
    with open(output) as file:
        text = file.read()
    found = {}
    for block in re.findall(r"^\S.*(?:\n    .*)*\n", text, re.MULTILINE):
        name = re.match(r"[A-Za-z0-9_.-]+", block).group(0)
        found[name] = found.get(name, "") + block
    return found


def cpu_build(tools, block):
    """The lock of torch's CPU build, of the version that ``block`` locks; empty where pip offers no
    such build here and none was locked before.
    """
    wanted = re.match(r"torch==\S+", block).group(0) + "+cpu"
    folder = os.path.join(tools.folder, "torch")
    shutil.rmtree(folder, ignore_errors=True)
    command = [tools.python, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
    if subprocess.call([*command, wanted]) != 0:
        print(f"pip offers no {wanted} here: locks/{TORCH_CPU} is left as it was")
        with open(os.path.join(LOCKS, TORCH_CPU)) as lock:
            return lock.read()
    (wheel,) = os.listdir(folder)
    digest = hashlib.sha256()
    with open(os.path.join(folder, wheel), "rb") as file:
        for chunk in iter(lambda: file.read(2**20), b""):
            digest.update(chunk)
    return f"{wanted} \\\n    --hash=sha256:{digest.hexdigest()}\n"


def write(path, blocks):
    """Blocks of lines as one file."""
    with open(path, "w") as file:
        file.write("".join(blocks))


def pip_install(environment, arguments):
    """Run pip; show one line per package, keep the whole output in the log."""
    # Compiling every module of torch takes minutes; Python compiles those that are used when they
    # are first imported.
    quiet = ["--disable-pip-version-check", "--no-input", "--no-compile"]
    command = [environment.python, "-m", "pip", "install", *quiet, *arguments]
    live = sys.stdout.isatty()
    tail = []
    pipe = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "encoding": "utf-8",
        "errors": "replace",
    }
    with open(environment.log, "a", encoding="utf-8") as log:
        process = subprocess.Popen(command, **pipe)
        with process:
            for line in process.stdout:
                log.write(line)
                log.flush()
                tail = [*tail, line.rstrip()][-15:]
                if line.startswith(("Collecting", "Installing collected", "Building")):
                    message = "  " + line.strip()[:90]
                    print(
                        "\r\033[K" + message if live else message,
                        end="" if live else "\n",
                        flush=True,
                    )
        if live:
            print("\r\033[K", end="", flush=True)
        if process.wait() != 0:
            print("\n".join(tail), file=sys.stderr)
            sys.exit(
                "pip could not install the locked packages (its last lines are above, all of "
                f"them in {environment.log}). "
                "Check the network and pip's own settings (pip config list), then run the same "
                "command again."
            )


def run_tests(environment, rest):
    """Exit status of pytest, after a second try of a few failures.

    Noise comes from the operating system and is never seeded, so a test of drawn values can fail by
    chance, and one of elapsed time because of what else the machine does. Up to ``SECOND_TRIES``
    failures run once more, one after another; a test that fails twice has failed. What passed only
    then is named.
    """
    failures = os.path.join(ROOT, ".pytest_cache", "v", "cache", "lastfailed")
    if os.path.exists(failures):  # of an earlier run
        os.remove(failures)
    status = environment.run(test_command(environment, rest), one_thread_each=True)
    if status != TESTS_FAILED or not os.path.exists(failures):
        return status
    with open(failures) as file:
        failed = sorted(json.load(file))
    if len(failed) > SECOND_TRIES or any(word in ("-x", "--pdb") for word in rest):
        return status
    print(f"Running {len(failed)} failed once more:", *failed, sep="\n  ", flush=True)
    again = ["--last-failed", "--last-failed-no-failures=none", "-n0", *rest]
    status = environment.run(test_command(environment, again), one_thread_each=True)
    if status == 0:
        print("Passed only in the second run, and to be looked at:", *failed, sep="\n  ")
    return status


def test_command(environment, rest):
    """The pytest command: several processes, unless the caller chose otherwise."""
    processes = (
        []
        if any(word.startswith(("-n", "--numprocesses", "--pdb")) for word in rest)
        else ["-n", "logical"]
    )
    return [environment.python, "-m", "pytest", *processes, *rest]


def run_checks(environment):
    """Run every check, name each result, and fail if one failed."""
    failed = [
        title
        for title, command in CHECKS
        if environment.run([os.path.join(environment.bin, command[0]), *command[1:]]) != 0
    ]
    print(
        "checks failed: " + ", ".join(failed)
        if failed
        else "checks passed: " + ", ".join(title for title, _ in CHECKS)
    )
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
