"""Types of arrays in signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Arrays = dict[str, npt.NDArray[Any]]
"""Arrays by name, in the form that a bundle stores."""
