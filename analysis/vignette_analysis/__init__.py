"""Analysis of vignette's runs: message matching, tables, and results.json.

In a notebook, on a downloaded run::

    from vignette_analysis import load
    analysis = load("runs/0b6fd5cc")  # with the results that it has; analyse() computes them from the logs
    analysis.results["messages"]      # the JSON contract of internal/runapi/results.go
    analysis.deliveries               # polars DataFrame, one row per expected delivery
"""

from .comparison import Comparison, compare
from .figures.analysis import Analysis, analyse
from .figures.stored import load

__all__ = ["Analysis", "Comparison", "analyse", "compare", "load"]
