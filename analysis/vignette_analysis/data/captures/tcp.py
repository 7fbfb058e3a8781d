"""TCP's retransmissions, spurious retransmissions and duplicate acknowledgements, as tshark finds them.

tshark analyses each frame by the earlier ones of both directions. This module counts its findings.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import polars as pl

from .pcapng import CaptureError

PROGRAM = "tshark"
TIMEOUT_SECONDS = 1800

VERDICTS = {
    "retransmissions": "tcp.analysis.retransmission",
    "spurious": "tcp.analysis.spurious_retransmission",
    "duplicateAcks": "tcp.analysis.duplicate_ack",
}
_FIELDS = (
    "frame.time_epoch",
    "frame.packet_flags_direction",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    *VERDICTS.values(),
)
_OUTBOUND = "0x2"
SCHEMA = {
    "ts": pl.Int64,
    "outbound": pl.Boolean,
    "source": pl.String,
    "destination": pl.String,
    "sourcePort": pl.Int64,
    "destinationPort": pl.Int64,
} | dict.fromkeys(VERDICTS, pl.Boolean)


def available() -> bool:
    """Report whether tshark is installed."""
    return shutil.which(PROGRAM) is not None


def verdicts(path: Path) -> pl.DataFrame:
    """The frames of a capture of which tshark says one of VERDICTS; raises CaptureError where it cannot read all of it."""
    with tempfile.TemporaryDirectory(prefix="tshark-") as own:
        # Without a user's preferences the same file gives the same figures.
        environment = os.environ | {"HOME": own, "WIRESHARK_CONFIG_DIR": own, "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(_command(path), env=environment, capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CaptureError(f"{PROGRAM}: {error}") from error
    if done.returncode:
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line and "could be dangerous" not in line]
        raise CaptureError(f"{PROGRAM} ended with {done.returncode}: {' '.join(lines)[:500]}")
    return _frames(done.stdout)


def _command(path: Path) -> list[str]:
    """The command that prints _FIELDS as columns, at a third of the cost of -T fields."""
    columns = ",".join(f'"{i}","%Cus:{name}:1:U"' for i, name in enumerate(_FIELDS))
    return [
        PROGRAM, "-n", "-r", str(path), "-T", "tabs", "-o", f"gui.column.format:{columns}", "-Y", " or ".join(VERDICTS.values()),
        # Dissecting the content of TCP would take most of the time, and adds nothing here.
        "-d", "tcp.port==1-65535,data",
    ]  # fmt: skip


def _frames(text: bytes) -> pl.DataFrame:
    """tshark's lines with tabs between _FIELDS; a field that a frame lacks is empty."""
    if not text.strip():
        return pl.DataFrame(schema=SCHEMA)
    columns = [f"column_{i}" for i in range(len(_FIELDS))]
    lines = pl.read_csv(text, separator="\t", has_header=False, quote_char=None, new_columns=columns, schema_overrides=[pl.String] * len(columns))
    field = dict(zip(_FIELDS, (pl.col(name).str.strip_chars().replace("", None) for name in columns), strict=True))
    return lines.select(
        # Nine decimals, as captures have nanoseconds.
        ts=field["frame.time_epoch"].str.replace(".", "", literal=True).cast(pl.Int64),
        outbound=field["frame.packet_flags_direction"] == _OUTBOUND,
        source=pl.coalesce(field["ip.src"], field["ipv6.src"]),
        destination=pl.coalesce(field["ip.dst"], field["ipv6.dst"]),
        sourcePort=field["tcp.srcport"].cast(pl.Int64),
        destinationPort=field["tcp.dstport"].cast(pl.Int64),
        **{name: field[verdict].is_not_null() for name, verdict in VERDICTS.items()},
    )
