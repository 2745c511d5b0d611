"""Charts as SVG: of the pages, and of your own results.

``Chart(...).svg()`` is the content of a file that stands alone, and ``html`` a part of a page.
``spending_chart`` draws what a ledger's budgets have spent over time.
"""

from reticent.pages.line_chart import Level, Series
from reticent.pages.page import Chart
from reticent.plots.spending import spending_chart

__all__ = ["Chart", "Level", "Series", "spending_chart"]
