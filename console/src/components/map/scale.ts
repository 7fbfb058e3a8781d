/** What the colour of a link says. */
export type Measure = "sinr" | "delivered" | "margin";

export const measures: Record<Measure, { label: string; unit: string; bounds: readonly [number, number, number, number] }> = {
  sinr: { label: "SINR", unit: "dB", bounds: [0, 5, 10, 20] },
  delivered: { label: "Delivered share", unit: "%", bounds: [10, 50, 90, 99] },
  margin: { label: "Pathloss below the limit by", unit: "dB", bounds: [3, 6, 10, 20] },
};

/** How a class of links is drawn. Colour, width and dashes say the same. */
export interface LinkStyle {
  colour: string;
  width: number;
  /** dash lengths in pixels; a line without is solid. */
  dash: readonly number[];
}

// From the worst class to the best: red over grey to blue, which all kinds of colour blindness keep apart.
const light = ["#a83a00", "#b06000", "#6b7177", "#2a7fb8", "#004f8a"];
const dark = ["#ff7a33", "#f2b134", "#a9b0b7", "#7cc4f0", "#4aa8f0"];
const dashes: readonly (readonly number[])[] = [[1, 5], [3, 4], [7, 4], [14, 4], []];
const widths = [1.25, 1.25, 1.5, 1.75, 2.25];

export const classes = 5;

/** A link of whose quality nothing is known. */
export const unknownClass = -1;

/** classOf a value, from 0 for the worst to 4 for the best; unknownClass without a value. */
export function classOf(measure: Measure, value: number | null | undefined): number {
  if (value === null || value === undefined || Number.isNaN(value)) return unknownClass;
  return measures[measure].bounds.filter((bound) => value >= bound).length;
}

export function styleOf(linkClass: number, scheme: "light" | "dark"): LinkStyle {
  const colours = scheme === "light" ? light : dark;
  const unknown = scheme === "light" ? "#8c939a" : "#6f767d";
  return { colour: colours[linkClass] ?? unknown, width: widths[linkClass] ?? 1, dash: dashes[linkClass] ?? [2, 2] };
}

/** classLabel says in words which values a class has. */
export function classLabel(measure: Measure, linkClass: number): string {
  const { bounds, unit } = measures[measure];
  if (linkClass < 0) return "not known";
  const [from, to] = [bounds[linkClass - 1], bounds[linkClass]];
  if (from === undefined) return `below ${bounds[0]} ${unit}`;
  return to === undefined ? `${from} ${unit} and more` : `${from} to ${to} ${unit}`;
}

/** valueLabel writes a value of a measure. */
export function valueLabel(measure: Measure, value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "not known";
  return `${value.toFixed(1)} ${measures[measure].unit}`;
}
