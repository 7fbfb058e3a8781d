"""Several runs side by side: one table, effect sizes, and tests fit for skewed delays."""
