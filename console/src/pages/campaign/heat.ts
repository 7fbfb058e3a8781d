import { valueOf, type Measure } from "./measures";
import { levelOf, type Run } from "./round";

/** Cell of the heat map: the runs that have both levels. */
export interface Cell {
  x: string;
  y: string;
  runs: Run[];
  value: number | undefined;
  /** text is the value, or how far the runs are. */
  text: string;
}

/** cellsOf the map, a list for each level of the axis that goes down. Without such an axis there is one list. */
export function cellsOf(runs: readonly Run[], x: { name: string; levels: readonly string[] }, y: { name: string; levels: readonly string[] } | undefined, measure: Measure): Cell[][] {
  const at = new Map<string, Run[]>();
  for (const run of runs) {
    const key = JSON.stringify([levelOf(run, x.name), y && levelOf(run, y.name)]);
    at.set(key, [...(at.get(key) ?? []), run]);
  }
  return (y?.levels ?? [""]).map((down) =>
    x.levels.map((across) => {
      const found = at.get(JSON.stringify([across, y && down])) ?? [];
      const value = valueOf(measure, found);
      return { x: across, y: down, runs: found, value, text: value === undefined ? stateOf(found) : measure.write(value) };
    }),
  );
}

/** stateOf runs without a value: the phase that comes first on the way. */
function stateOf(runs: readonly Run[]): string {
  if (runs.length === 0) return "no run";
  const phases = new Set(runs.map(({ phase }) => phase));
  const first = ["Running", "Collecting", "Analysing", "Provisioning", "Queued", "Pending", "Failed", "Lost", "Skipped"].find((phase) => phases.has(phase));
  return first?.toLowerCase() ?? "–";
}

/** Scale puts values into the order of colours, from 0 to 1. */
export interface Scale {
  least: number;
  greatest: number;
  logarithmic: boolean;
}

/** scaleOf the values that are shown; undefined if there are none. A share's scale ends at all, and begins below the least one. Times that lie far apart have a logarithmic one. */
export function scaleOf(cells: readonly Cell[][], measure: Measure): Scale | undefined {
  const values = cells.flat().flatMap(({ value }) => value ?? []);
  if (values.length === 0) return undefined;
  const least = Math.min(...values);
  if (measure.whole) return { least: Math.min(90, 10 * Math.floor(least / 10)), greatest: measure.whole[1], logarithmic: false };
  const greatest = Math.max(...values);
  return { least, greatest, logarithmic: least > 0 && greatest > 30 * least };
}

export function placeOf(value: number, { least, greatest, logarithmic }: Scale): number {
  if (greatest <= least) return 0.5;
  const place = logarithmic ? Math.log(value / least) / Math.log(greatest / least) : (value - least) / (greatest - least);
  return Math.min(1, Math.max(0, place));
}

// YlGnBu (Brewer): its lightness falls evenly, so that it also works without colour vision and in print.
const stops = [
  [255, 255, 217],
  [199, 233, 180],
  [65, 182, 196],
  [34, 94, 168],
  [8, 29, 88],
] as const;

/** colourOf a place, and the ink that can be read on it: contrast is 4.5 to 1 or more. */
export function colourOf(place: number): { fill: string; ink: string } {
  const at = place * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  const [from, to] = [stops[low] ?? stops[0], stops[low + 1] ?? stops[0]];
  const rgb = from.map((value, i) => Math.round(value + (at - low) * ((to[i] ?? value) - value)));
  const bright = luminance(rgb);
  return { fill: `rgb(${rgb.join(", ")})`, ink: (bright + 0.05) / 0.05 > 1.05 / (bright + 0.05) ? "#000" : "#fff" };
}

/** luminance by WCAG 2. */
export function luminance(rgb: readonly number[]): number {
  const [r = 0, g = 0, b = 0] = rgb.map((value) => (value <= 10.3 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** moved is the cell that a key leads to from another one; undefined for other keys. */
export function moved(key: string, [row, column]: readonly [number, number], rows: number, columns: number): [number, number] | undefined {
  const within = (value: number, size: number) => Math.min(size - 1, Math.max(0, value));
  switch (key) {
    case "ArrowUp":
      return [within(row - 1, rows), column];
    case "ArrowDown":
      return [within(row + 1, rows), column];
    case "ArrowLeft":
      return [row, within(column - 1, columns)];
    case "ArrowRight":
      return [row, within(column + 1, columns)];
    case "Home":
      return [row, 0];
    case "End":
      return [row, columns - 1];
    default:
      return undefined;
  }
}
