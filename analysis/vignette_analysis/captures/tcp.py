"""TCP's retransmissions, spurious retransmissions and duplicate acknowledgements, as tshark finds them.

tshark judges every frame of a file by those before it, in both directions. Here only its verdicts are counted.
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
    """Tell whether tshark is installed."""
    return shutil.which(PROGRAM) is not None


def verdicts(path: Path) -> pl.DataFrame:
    """The frames of a capture of which tshark says one of VERDICTS; raises CaptureError where it cannot read all of it."""
    with tempfile.TemporaryDirectory(prefix="tshark-") as own:
        # Of nobody's preferences: the same file gives the same figures.
        environment = os.environ | {"HOME": own, "WIRESHARK_CONFIG_DIR": own, "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(_command(path), env=environment, capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CaptureError(f"{PROGRAM}: {error}") from error
    if done.returncode:
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line and "could be dangerous" not in line]
        raise CaptureError(f"{PROGRAM} ended with {done.returncode}: {' '.join(lines)[:500]}")
    return _frames(done.stdout.decode())


def _command(path: Path) -> list[str]:
    """Columns cost a third of what -T fields does, and have the same content."""
    columns = ",".join(f'"{i}","%Cus:{name}:1:U"' for i, name in enumerate(_FIELDS))
    return [
        PROGRAM, "-n", "-r", str(path), "-T", "tabs", "-o", f"gui.column.format:{columns}", "-Y", " or ".join(VERDICTS.values()),
        # What TCP carries says nothing about its frames, and to dissect it takes most of the time.
        "-d", "tcp.port==1-65535,data",
    ]  # fmt: skip


def _frames(text: str) -> pl.DataFrame:
    rows = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < len(_FIELDS):
            cells += [""] * (len(_FIELDS) - len(cells))
        epoch, direction, *ends, source_port, destination_port = cells[:8]
        source, destination = (ends[i] or ends[i + 2] for i in range(2))
        rows.append(
            [_nanoseconds(epoch), direction == _OUTBOUND, source, destination, int(source_port), int(destination_port), *map(bool, cells[8:11])]
        )
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _nanoseconds(epoch: str) -> int:
    seconds, _, fraction = epoch.partition(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
