import "uplot/dist/uPlot.min.css";
import { Box, useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { series as colours } from "../theme/palette";
import { afterT0, two } from "./time";

export interface Curve {
  label: string;
  values: (number | null)[];
}

interface ChartProps {
  /** title that people and screen readers read. */
  title: string;
  /** times in Unix seconds. */
  times: number[];
  curves: Curve[];
  /** written gives a value with its unit. */
  written: (value: number) => string;
  /** t0 in Unix seconds: the axis then counts from it. */
  t0?: number | undefined;
  /** range of the values, where it is fixed. */
  range?: [number, number] | undefined;
  height?: number;
}

const dashes = [[], [6, 4], [2, 3]];

/** Chart draws curves over time. Curves differ by their dashes too. */
export function Chart({ title, times, curves, written, t0, range, height = 180 }: ChartProps) {
  const element = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef<uPlot.AlignedData>([[]]);
  const scheme = useComputedColorScheme("light");
  const labels = curves.map((curve) => curve.label).join("\n");
  const [low, high] = range ?? [];
  useEffect(() => {
    const root = element.current;
    if (!root) return;
    const options = optionsOf({ names: labels.split("\n"), written, t0, range: low === undefined || high === undefined ? undefined : [low, high], dark: scheme === "dark", height, width: root.clientWidth });
    const made = new uPlot(options, latest.current, root);
    plot.current = made;
    const resized = new ResizeObserver(() => {
      made.setSize({ width: root.clientWidth, height });
    });
    resized.observe(root);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [labels, written, t0, low, high, scheme, height]);
  useEffect(() => {
    latest.current = [times, ...curves.map((curve) => curve.values)];
    plot.current?.setData(latest.current);
  });
  return <Box ref={element} role="img" aria-label={`${title}: ${newest(curves, written)}`} w="100%" mih={height} />;
}

function newest(curves: Curve[], written: (value: number) => string): string {
  return curves
    .map((curve) => {
      const value = curve.values.findLast((v) => v !== null);
      return `${curve.label} ${value === undefined ? "not known" : written(value)}`;
    })
    .join(", ");
}

const leastSeconds = 60;

/** timesShown by an axis: those of the values, and a minute at least. Without this a single value has an axis of 1000 days. */
export function timesShown(times: ArrayLike<number>): [number, number] | undefined {
  const [first, last] = [times[0], times[times.length - 1]];
  return first === undefined || last === undefined ? undefined : [first, Math.max(last, first + leastSeconds)];
}

/** marksOf an axis of times are as people say them, or to the second where two of them would be the same. */
export function marksOf(times: readonly number[], t0: number | undefined): string[] {
  const words = times.map((seconds) => (t0 === undefined ? exactly(seconds, t0) : afterT0(seconds - t0).slice(2)));
  return new Set(words).size === words.length ? words : times.map((seconds) => exactly(seconds, t0));
}

/** exactly writes a time to the second, also hours after T0. */
function exactly(seconds: number, t0: number | undefined): string {
  if (t0 === undefined) return new Date(1000 * seconds).toISOString().slice(11, 19) + "Z";
  const whole = Math.round(seconds - t0);
  if (whole < 3600) return afterT0(whole).slice(2);
  return `+${Math.floor(whole / 3600)}h${two(Math.floor((whole % 3600) / 60))}m${two(whole % 60)}s`;
}

interface Options {
  names: string[];
  written: (value: number) => string;
  t0: number | undefined;
  range: [number, number] | undefined;
  dark: boolean;
  height: number;
  width: number;
}

function optionsOf({ names, written, t0, range, dark, height, width }: Options): uPlot.Options {
  const ink = dark ? "#c9c9c9" : "#333333";
  const grid = { stroke: dark ? "#3b3b3b" : "#e3e3e3", width: 1 };
  return {
    width,
    height,
    tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), "Etc/UTC"),
    cursor: { drag: { x: false, y: false }, sync: { key: "experiment" } },
    legend: { live: true },
    scales: { x: { time: true, range: (plot, low, high) => timesShown(plot.data[0]) ?? [low, high] }, y: range ? { range } : { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.05 : 1] } },
    axes: [
      { stroke: ink, grid, ticks: grid, space: 80, values: (_, splits) => marksOf(splits, t0) },
      { stroke: ink, grid, ticks: grid, size: 70, values: (_, splits) => splits.map(written) },
    ],
    series: [
      { label: "Time", value: (_, seconds: number | null) => (seconds === null ? "" : exactly(seconds, t0)) },
      ...names.map((label, i) => ({
        label,
        stroke: strokeOf(i, dark),
        width: 2,
        dash: dashes[i % dashes.length] ?? [],
        points: { show: false },
        value: (_: uPlot, value: number | null) => (value === null ? "–" : written(value)),
      })),
    ],
  };
}

function strokeOf(i: number, dark: boolean): string {
  // On black the palette's blue has too little contrast, so that its light one is used.
  return i === 0 && dark ? "#56B4E9" : (colours[i % colours.length] ?? "#7f8c8d");
}
