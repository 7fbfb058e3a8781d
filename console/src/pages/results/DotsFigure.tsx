import { Loader, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import type { ManifestFile } from "../../archive/types";
import { duration, tickDuration } from "../../components/figures";
import { PlotFigure, type PlotLibrary, type TextRow } from "../../components/plots/PlotFigure";
import type { Inks } from "../../components/plots/inks";
import { afterT0 } from "../../components/time";
import { Trouble } from "../../components/Trouble";
import type { Column } from "../../components/VirtualTable";
import { dotsQuery, sampleWords, type Dot } from "./deliveries";
import { OfTable } from "./OfTable";

interface DotsFigureProps {
  namespace: string;
  uid: string;
  t0: string | undefined;
  title: string;
  /** path of the table, and its column with the time that something took. */
  path: string;
  column: string;
  /** of what a dot is: deliveries or requests. */
  of: string;
  file: string;
}

/** DotsFigure draws how long single deliveries or requests took, over the time at which they were sent. */
export function DotsFigure(props: DotsFigureProps) {
  return <OfTable {...props}>{(table) => <Dots {...props} table={table} />}</OfTable>;
}

function Dots({ namespace, uid, t0, title, path, column, of, file, table }: DotsFigureProps & { table: ManifestFile }) {
  const { data, error } = useQuery(dotsQuery(namespace, uid, t0 === undefined ? undefined : table, column, t0 ?? ""));
  const draw = useCallback((plot: PlotLibrary, width: number, inks: Inks) => drawDots(plot, data?.rows ?? [], width, inks), [data]);
  const rows = useMemo(() => (data?.rows ?? []).map((dot): TextRow => ({ ...dot })), [data]);
  if (error) return <Trouble error={error} title={`${title}: the table could not be read`} />;
  if (t0 === undefined) return <Text size="sm">{`${title}: the run has no T0, from which the times could count.`}</Text>;
  if (!data) return <Loader aria-label={`${title}: the table is being read`} />;
  return (
    <PlotFigure title={title} file={file} draw={draw} columns={dotColumns} rows={rows}>
      {sampleWords(data, of, path)}
    </PlotFigure>
  );
}

function drawDots(plot: PlotLibrary, dots: Dot[], width: number, inks: Inks): Element {
  const times = dots.map(({ seconds }) => seconds).filter((seconds) => seconds > 0);
  const greatest = times.reduce((a, b) => Math.max(a, b), 0);
  const logarithmic = times.length === dots.length && greatest > 100 * times.reduce((a, b) => Math.min(a, b), Infinity);
  return plot.plot({
    width,
    height: 320,
    marginLeft: 64,
    x: { label: "sent, after T0", tickFormat: (seconds: number) => afterT0(seconds).slice(3), ...(width < 500 && { ticks: 4 }) },
    y: { label: null, type: logarithmic ? "log" : "linear", grid: true, tickFormat: logarithmic ? duration : tickDuration(0, greatest), ticks: 6, zero: !logarithmic, nice: true },
    marks: [plot.dot(dots, { x: "at", y: "seconds", r: 2, fill: inks.mark, fillOpacity: dots.length > 500 ? 0.5 : 0.9 }), plot.tip(dots, plot.pointer({ x: "at", y: "seconds", title: titleOf }))],
  });
}

function titleOf({ id, publisher, subscriber, at, seconds }: Dot): string {
  return `${id}\n${publisher} to ${subscriber || "?"}\nsent at ${afterT0(at)}, took ${duration(seconds)}`;
}

const dotColumns: Column<TextRow>[] = [
  { id: "at", head: "Sent", numeric: true, value: ({ at }) => at, show: ({ at }) => (typeof at === "number" ? afterT0(at) : "–") },
  { id: "seconds", head: "Took", numeric: true, value: ({ seconds }) => seconds, show: ({ seconds }) => duration(seconds as number) },
  { id: "publisher", head: "Publisher", value: ({ publisher }) => publisher },
  { id: "subscriber", head: "Subscriber", value: ({ subscriber }) => subscriber },
  { id: "id", head: "Message", value: ({ id }) => id },
];
