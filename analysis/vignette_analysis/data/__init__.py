"""Reads a run: its records, logs and captures, and matches its messages and requests."""
