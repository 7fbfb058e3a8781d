"""E7's figure: how long bursts of messages take from every publisher to every subscriber.

    hack/python scenarios/e7/bursts.py RUN [--csv FILE] [--plot FILE]

RUN is a folder that `vignette results NAME --download RUN` made. The time of a burst is from when its first message was triggered to when its last
one was received. A burst that did not arrive whole has no time: the table has how many messages came instead.
"""

import argparse
from pathlib import Path

import polars as pl
from vignette_analysis import Analysis, analyse


def bursts(run: Analysis) -> pl.DataFrame:
    """One row per publisher and subscriber that expects something: their instances and protocols, messages, received, seconds (null: not whole)."""
    instances = run.run.instances
    protocols = pl.DataFrame(
        {
            "number": [i.number for i in instances],
            "name": [i.name for i in instances],
            "out": [i.publish_protocol for i in instances],
            "in": [i.subscribe_protocol for i in instances],
        },
        schema_overrides={"number": pl.UInt32},
    )
    begun = run.messages.select("message", "triggered")
    pairs = run.deliveries.join(begun, on="message").group_by("publisher", "subscriber")
    times = pairs.agg(
        messages=pl.len(), received=pl.col("received").count(), seconds=(pl.col("received").max() - pl.coalesce("triggered", "sent").min()) / 1e9
    )
    return (
        times.join(protocols.select(publisher="number", publisherName="name", publisherProtocol="out"), on="publisher")
        .join(protocols.select(subscriber="number", subscriberName="name", subscriberProtocol="in"), on="subscriber")
        .with_columns(seconds=pl.when(pl.col("received") == pl.col("messages")).then("seconds"))
        .sort("publisherProtocol", "subscriberProtocol", "publisherName", "subscriberName")
        .select("publisherProtocol", "subscriberProtocol", "publisherName", "subscriberName", "messages", "received", "seconds")
    )


def matrix(table: pl.DataFrame) -> str:
    """Publishers' protocols by rows, subscribers' by columns: seconds, or how many messages came of how many."""
    columns = sorted(set(table["subscriberProtocol"]))
    width = max(len(name) for name in [*columns, *table["publisherProtocol"], "publisher"]) + 2
    lines = ["publisher".ljust(width) + "".join(name.rjust(width) for name in columns)]
    for (name,), rows in table.group_by("publisherProtocol", maintain_order=True):
        lines.append(str(name).ljust(width) + "".join(_cell(rows.filter(pl.col("subscriberProtocol") == column)).rjust(width) for column in columns))
    return "\n".join(lines)


def _cell(rows: pl.DataFrame) -> str:
    """Of several pairs of the same protocols, the mean."""
    if rows.is_empty():
        return "-"
    if rows["seconds"].null_count():
        return f"{rows['received'].sum()}/{rows['messages'].sum()}"
    return f"{rows['seconds'].mean():.3f} s"


def plot(table: pl.DataFrame, path: Path) -> None:
    """Draw the table as a map of colours."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    out, into = sorted(set(table["publisherProtocol"])), sorted(set(table["subscriberProtocol"]))
    mean = {key: rows["seconds"].mean() for key, rows in table.drop_nulls("seconds").group_by("publisherProtocol", "subscriberProtocol")}
    seconds = [[mean.get((o, i), float("nan")) for i in into] for o in out]
    figure, axes = plt.subplots(figsize=(1.1 * len(into) + 3, 0.7 * len(out) + 2), layout="constrained")
    image = axes.imshow(seconds, cmap="viridis")
    axes.set_xticks(range(len(into)), into, rotation=30, ha="right")
    axes.set_yticks(range(len(out)), out)
    axes.set_xlabel("subscriber")
    axes.set_ylabel("publisher")
    for y, row in enumerate(seconds):
        for x, value in enumerate(row):
            axes.text(x, y, "not whole" if value != value else f"{value:.3f}", ha="center", va="center", color="white", fontsize=8)
    figure.colorbar(image, label="time of a burst (s)")
    figure.savefig(path)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Print the table of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--csv", type=Path, help="write one row per publisher and subscriber to this file")
    parser.add_argument("--plot", type=Path, help="draw the table to this file, such as bursts.png")
    chosen = parser.parse_args(arguments)
    table = bursts(analyse(chosen.run))
    print(matrix(table))
    if chosen.csv:
        table.write_csv(chosen.csv)
    if chosen.plot:
        plot(table, chosen.plot)


if __name__ == "__main__":
    main()
