"""A synthetic table by MST from a coded one: ``python synthetic_rows.py CODED.csv SIZES.json
OUT.csv EPSILON DELTA SEED``, in an environment of its own.

Needs dpmm 0.1.9 (pip install dpmm), whose pinned requirements do not fit this project's. Columns
are codes from 0 with public numbers of values: nothing is learnt from the rows outside the budget.

References:
    - McKenna, Miklau and Sheldon (2021), "Winning the NIST contest: a scalable and general approach
      to differentially private synthetic data", arXiv:2108.04978.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Read the coded table, and write as many synthetic rows."""
    import pandas  # type: ignore[import-untyped]
    from dpmm.pipelines import MSTPipeline  # type: ignore[import-not-found]

    coded, sizes, out, epsilon, delta, seed = sys.argv[1:]
    table: Any = pandas.read_csv(coded)
    pipeline = MSTPipeline(
        epsilon=float(epsilon), delta=float(delta), n_jobs=1, disable_processing=True
    )
    pipeline.fit(
        table, domain=json.loads(Path(sizes).read_text(encoding="utf-8")), random_state=int(seed)
    )
    # The number of rows is taken to be public, as in the other rows of the tables.
    pipeline.generate(n_records=len(table), random_state=int(seed)).to_csv(out, index=False)


if __name__ == "__main__":
    main()
