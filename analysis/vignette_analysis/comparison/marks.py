"""Marks and words beside labels and figures, in tables and charts alike."""

# Follows a difference that the emulation's lateness may explain.
WITHIN = " (within lateness)"
# Words for a reference figure, by whether the interval covers it.
COVERED = {True: "covered", False: "NOT covered", None: "no interval"}
# Follows the label of every run that did not keep up, or is incomplete.
MARK = "*"


def doubtful(results: dict) -> set[str]:
    """Labels of runs, conditions and levels that did not keep up or are incomplete."""
    runs = [run for run in results["runs"] if run["keptUp"] is not True or not run["complete"] or run["warnings"]]
    uids = {run["uid"] for run in runs}
    levels = {level["label"] for axis in results["axes"] or [] for level in axis["levels"] if not uids.isdisjoint(level["runs"])}
    return {run["label"] for run in runs} | {run["condition"] for run in runs} | levels


def marked(label: str, marks: set[str]) -> str:
    """A label as tables and plots show it."""
    return f"{label} {MARK}" if label in marks else label


def covered(entry: dict) -> str:
    """What is said of a reference figure: whether the interval of one's own covers it."""
    if entry["measured"] is None:
        return "not measured"
    return COVERED[entry["covered"]] + (WITHIN if entry["withinLateness"] else "")
