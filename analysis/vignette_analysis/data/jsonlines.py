"""Reads JSON Lines that may be torn. Bad lines are counted and never fatal."""

import io
from pathlib import Path

import polars as pl

BLOCK_BYTES = 64 << 20


def read(path: Path, schema: dict[str, pl.DataType]) -> tuple[pl.DataFrame, int, bool]:
    """Read a file's records.

    Returns the records with the schema's columns (absent ones null), the number of lines that are not JSON objects of
    that schema, and whether the last line is bad and has no line end.
    """
    try:
        frame = pl.scan_ndjson(path, schema=schema).collect() if path.stat().st_size else pl.DataFrame(schema=schema)
        return frame, 0, False
    except pl.exceptions.PolarsError:
        return _read_blocks(path, schema)


def _read_blocks(path: Path, schema: dict[str, pl.DataType]) -> tuple[pl.DataFrame, int, bool]:
    frames, bad, torn = [pl.DataFrame(schema=schema)], 0, False
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            block += file.readline()
            good, bad_here = parse(block.split(b"\n"), schema)
            frames += good
            bad += bad_here
            if not block.endswith(b"\n"):
                torn = parse([block[block.rfind(b"\n") + 1 :]], schema)[1] > 0
    return pl.concat(frames, rechunk=True), bad, torn


def parse(lines: list[bytes], schema: dict[str, pl.DataType]) -> tuple[list[pl.DataFrame], int]:
    """Parse lines and count the bad ones. Where a parse fails, it tries each half, down to the bad line."""
    text = b"\n".join(lines)
    if not text.strip():
        return [], 0
    try:
        return [pl.read_ndjson(io.BytesIO(text), schema=schema)], 0
    except pl.exceptions.PolarsError:
        if len(lines) == 1:
            return [], 1
    middle = len(lines) // 2
    left, bad_left = parse(lines[:middle], schema)
    right, bad_right = parse(lines[middle:], schema)
    return left + right, bad_left + bad_right
