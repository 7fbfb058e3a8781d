import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vignette_analysis.data import jsonlines

SCHEMA = {"ts": pl.Int64, "id": pl.String}
GOOD = b'{"ts":1,"id":"x"}'


@pytest.mark.parametrize(
    ("content", "good", "bad", "torn"),
    [
        (b"", 0, 0, False),
        (b"\n\n", 0, 0, False),
        (GOOD + b"\n", 1, 0, False),
        (GOOD, 1, 0, False),
        (GOOD + b'\n{"ts":2,"i', 1, 1, True),
        (b"nonsense\n" + GOOD + b"\n", 1, 1, False),
        (GOOD + b"\n[1]\n5\n" + GOOD + b"\n", 2, 2, False),
        (b'{"ts":1,"id":"\xff"}\n' + GOOD + b"\n\n" + GOOD, 2, 1, False),
        (b'{"ts":"1","id":"x"}\n', 0, 1, False),
    ],
)
def test_bad_lines_are_counted_and_good_ones_kept(tmp_path, content, good, bad, torn):
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    frame, bad_found, torn_found = jsonlines.read(path, SCHEMA)
    assert (frame.height, bad_found, torn_found) == (good, bad, torn)


@given(st.lists(st.one_of(st.text(max_size=8), st.just(None)), max_size=40), st.integers(8, 200))
def test_every_good_line_survives_whatever_lies_between(tmp_path_factory, ids, block):
    path = tmp_path_factory.mktemp("jsonl") / "log.jsonl"
    lines = [b'{"ts":' if i is None else json.dumps({"ts": n, "id": i}).encode() for n, i in enumerate(ids)]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    before, jsonlines.BLOCK_BYTES = jsonlines.BLOCK_BYTES, block
    try:
        frame, bad, torn = jsonlines.read(path, SCHEMA)
    finally:
        jsonlines.BLOCK_BYTES = before
    assert frame["id"].to_list() == [i for i in ids if i is not None]
    assert bad == ids.count(None) and not torn
