"""Reads JSON Lines. Bad lines are counted and never fatal."""

import io
from pathlib import Path

import polars as pl

BLOCK_BYTES = 64 << 20


def read(path: Path, schema: dict[str, pl.DataType]) -> tuple[pl.DataFrame, int]:
    """Read a file's records.

    Returns the records with the schema's columns (absent ones null), and the number of lines that are not JSON objects
    of that schema. An incomplete last line is none of them: the archive's seal names it.
    """
    try:
        frame = pl.scan_ndjson(path, schema=schema).collect() if path.stat().st_size else pl.DataFrame(schema=schema)
        return frame, 0
    except pl.exceptions.PolarsError:
        return _read_blocks(path, schema)


def _read_blocks(path: Path, schema: dict[str, pl.DataType]) -> tuple[pl.DataFrame, int]:
    frames, bad = [pl.DataFrame(schema=schema)], 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            block += file.readline()
            *lines, rest = block.split(b"\n")
            good, bad_here = parse(lines, schema)
            frames += good + parse([rest], schema)[0]
            bad += bad_here
    return pl.concat(frames, rechunk=True), bad


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
