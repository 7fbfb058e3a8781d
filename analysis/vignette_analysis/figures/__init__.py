"""Computes a run's figures from its data: counts, delays, bounds and the verdict."""
