"""The figure is a picture of a sensible size with something on it."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from reticent.demos.posthoc.figure import figure


def test_the_figure_shows_all_its_panels(tiny_outcome):
    with Image.open(io.BytesIO(figure(tiny_outcome))) as picture:
        assert picture.format == "PNG"
        assert picture.width > 1500
        shade = np.asarray(picture.convert("L"))
    thirds = np.array_split(shade, 3, axis=1)
    assert all((part < 128).mean() > 0.005 for part in thirds)
