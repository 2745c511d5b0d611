"""Runs tests as other processors would compute them, and prints one line for each.

    python -m tests.kernels [pytest arguments]
    python -m tests.kernels -n 2 -m "not slow and not browser" tests/systems

Libraries choose their code by the processor that they find: OpenBLAS under numpy and scipy, MKL,
oneDNN and ATen under torch, numpy's own loops, faiss, and the C library's exp, log and sin. Sums in
another order and multiplications that round once less give other last bits, and what is trained
gives other weights. Environment variables make each library take what it would take elsewhere. A
test that fails under one of them and passes under another holds bits that nobody promised, or finds
a promise of exactness that does not hold.

Each kernel first computes a few products and functions. One that this processor cannot run, or that
computes them as an earlier one does, is named and left out. That is so for all but the first where
the processor is no x86-64.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

ROOT = Path(__file__).parents[1]

_PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")

_PROBE = """
import hashlib, math
import numpy as np
from scipy.linalg.blas import dgemm
random = np.random.default_rng(0)
left, right = random.normal(size=(97, 131)), random.normal(size=(131, 61))
found = [left @ right, left @ left[0], left.astype("f4") @ right.astype("f4"),
         dgemm(1.0, left, right), np.linalg.svd(right, full_matrices=False)[0],
         np.exp(left), np.log(np.abs(left)), np.tanh(left), left.sum(axis=0),
         np.array([math.exp(x) + math.log(abs(x)) + math.sin(x) for x in left.ravel()])]
try:
    import torch
except ModuleNotFoundError:
    pass
else:
    first, second = (torch.from_numpy(rows.astype("f4")) for rows in (left, right))
    pictures = first[:48, :128].reshape(2, 3, 32, 32)
    filters = second[:27, :8].T.reshape(8, 3, 3, 3)
    found += [first @ second, first.double() @ second.double(), first.exp(), first.sum(dim=0),
              torch.nn.functional.conv2d(pictures, filters.contiguous())]
digest = hashlib.sha256()
for each in found:
    digest.update(np.ascontiguousarray(each).tobytes())
print(digest.hexdigest())
"""


@dataclass(frozen=True)
class Outcome:
    """What the tests did under one kernel.

    Attributes:
        passed: how many tests passed.
        failures: names of tests that failed or could not be collected.
        status: pytest's exit status.
        output: what pytest printed.
    """

    passed: int
    failures: tuple[str, ...]
    status: int
    output: str


def kernels() -> dict[str, dict[str, str]]:
    """Environment variables that make each kernel, by its name; none for the processor's own."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    wider = [name for name in found if name.startswith(("AVX512", "X86_V4"))]
    no_fma = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4"
    return {
        "own": {},
        "avx2": {
            "OPENBLAS_CORETYPE": "Haswell",
            "MKL_CBWR": "AVX2",
            "ATEN_CPU_CAPABILITY": "avx2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "FAISS_OPT_LEVEL": "AVX2",
            "NPY_DISABLE_CPU_FEATURES": " ".join(wider),
        },
        "avx": {
            "OPENBLAS_CORETYPE": "Sandybridge",
            "MKL_CBWR": "AVX",
            "ATEN_CPU_CAPABILITY": "default",
            "ONEDNN_MAX_CPU_ISA": "AVX",
            "FAISS_OPT_LEVEL": "GENERIC",
            "NPY_DISABLE_CPU_FEATURES": " ".join(found),
            "GLIBC_TUNABLES": no_fma,
        },
        "sse": {
            "OPENBLAS_CORETYPE": "Prescott",
            "MKL_CBWR": "COMPATIBLE",
            "ATEN_CPU_CAPABILITY": "default",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "FAISS_OPT_LEVEL": "GENERIC",
            "NPY_DISABLE_CPU_FEATURES": " ".join(found),
            "GLIBC_TUNABLES": no_fma,
        },
    }


def probe(variables: Mapping[str, str]) -> str | None:
    """A digest of what is computed under ``variables``; None where this processor cannot."""
    done = subprocess.run(
        [sys.executable, "-c", _PROBE],
        env=_environment(variables),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else None


def run(variables: Mapping[str, str], arguments: Sequence[str]) -> Outcome:
    """Run pytest once under ``variables``.

    Args:
        variables: names and values that the environment gets on top of its own.
        arguments: those of pytest.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        done = subprocess.run(
            [*_PYTEST, *arguments, f"--junitxml={report}"],
            cwd=ROOT,
            env=_environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    broken = [case for case in cases if _has(case, "failure", "error")]
    passed = (
        len(cases) - len({id(case) for case in broken}) - sum(_has(x, "skipped") for x in cases)
    )
    names = dict.fromkeys(_name(case) for case in broken)
    return Outcome(passed, tuple(names), done.returncode, done.stdout)


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 where all tests passed under every kernel that this processor can run."""
    seen: dict[str, str] = {}
    worst = 0
    for kernel, variables in kernels().items():
        digest = probe(variables)
        if digest is None:
            print(f"{kernel}: this processor cannot run it", flush=True)
            continue
        if digest in seen:
            print(f"{kernel}: computes as {seen[digest]} does", flush=True)
            continue
        seen[digest] = kernel
        outcome = run(variables, arguments)
        line = f"{kernel}: {outcome.passed} passed, {len(outcome.failures)} failed"
        print(" ".join([line, *outcome.failures]), flush=True)
        if outcome.status != 0:
            print(outcome.output, file=sys.stderr, flush=True)
        worst = max(worst, abs(outcome.status))
    return worst


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {"OMP_NUM_THREADS": "1"} | dict(os.environ) | dict(variables)


def _has(case: ElementTree.Element, *kinds: str) -> bool:
    return any(case.find(kind) is not None for kind in kinds)


def _name(case: ElementTree.Element) -> str:
    module, name = case.get("classname", ""), case.get("name", "")
    return f"{module.replace('.', '/')}.py::{name}" if module else name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
