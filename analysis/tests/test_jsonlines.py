import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vignette_analysis.data import jsonlines

SCHEMA = {"ts": pl.Int64, "id": pl.String}
GOOD = b'{"ts":1,"id":"x"}'


@pytest.mark.parametrize(
    ("content", "good", "bad"),
    [
        (b"", 0, 0),
        (b"\n\n", 0, 0),
        (GOOD + b"\n", 1, 0),
        (GOOD, 1, 0),
        (GOOD + b'\n{"ts":2,"i', 1, 0),
        (b"nonsense\n" + GOOD + b"\n", 1, 1),
        (GOOD + b"\n[1]\n5\n" + GOOD + b"\n", 2, 2),
        (b'{"ts":1,"id":"\xff"}\n' + GOOD + b"\n\n" + GOOD, 2, 1),
        (b'{"ts":"1","id":"x"}\n', 0, 1),
    ],
)
def test_bad_lines_are_counted_but_for_a_torn_last_one_and_good_ones_kept(tmp_path, content, good, bad):
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    frame, bad_found = jsonlines.read(path, SCHEMA)
    assert (frame.height, bad_found) == (good, bad)


@given(st.lists(st.one_of(st.text(max_size=8), st.just(None)), max_size=40), st.integers(8, 200))
def test_every_good_line_survives_whatever_lies_between(tmp_path_factory, ids, block):
    path = tmp_path_factory.mktemp("jsonl") / "log.jsonl"
    lines = [b'{"ts":' if i is None else json.dumps({"ts": n, "id": i}).encode() for n, i in enumerate(ids)]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    before, jsonlines.BLOCK_BYTES = jsonlines.BLOCK_BYTES, block
    try:
        frame, bad = jsonlines.read(path, SCHEMA)
    finally:
        jsonlines.BLOCK_BYTES = before
    assert frame["id"].to_list() == [i for i in ids if i is not None]
    assert bad == ids.count(None)
