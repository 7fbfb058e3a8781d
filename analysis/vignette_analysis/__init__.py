"""Analysis of vignette's runs: message matching, tables, and results.json.

In a notebook, on a downloaded run::

    from vignette_analysis import analyse
    analysis = analyse("runs/0b6fd5cc")
    analysis.results["messages"]      # the JSON contract of internal/runapi/results.go
    analysis.deliveries               # polars DataFrame, one row per expected delivery
"""

from .analysis import Analysis, analyse
from .comparison import Comparison, compare

__all__ = ["Analysis", "Comparison", "analyse", "compare"]
