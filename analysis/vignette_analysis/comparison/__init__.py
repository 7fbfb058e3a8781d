"""Several runs side by side: one table, effect sizes, and tests fit for skewed delays.

In a notebook, on downloaded runs::

    from vignette_analysis import compare
    comparison = compare(["runs/lan", "runs/satcom"])
    print(comparison.text())
    comparison.results["groups"][0]["differences"]      # docs/reference/comparison.md has the form
"""

from .comparison import Comparison, compare
from .labels import EACH_RUN

__all__ = ["EACH_RUN", "Comparison", "compare"]
