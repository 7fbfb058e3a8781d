/** niceStep is the least 1, 2 or 5 times a power of ten that is no smaller than a value. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/** multiples of a step from one value to another. */
export function multiples(step: number, from: number, to: number): number[] {
  const all: number[] = [];
  for (let n = Math.ceil(from / step); n * step <= to && all.length < 200; n++) all.push(n * step);
  return all;
}

/** ScaleBar is a length that people read easily, and how many pixels it has. */
export interface ScaleBar {
  metres: number;
  pixels: number;
  label: string;
}

/** scaleBar of at most a width in pixels. */
export function scaleBar(metresPerPixel: number, most = 120): ScaleBar {
  const room = metresPerPixel * most;
  let metres = niceStep(room);
  while (metres > room * (1 + 1e-9)) metres = niceStep(metres / 2.5);
  return { metres, pixels: metres / metresPerPixel, label: lengthLabel(metres) };
}

/** lengthLabel writes metres as people do. */
export function lengthLabel(metres: number): string {
  if (metres >= 10_000) return `${tidy(metres / 1000, 0)} km`;
  if (metres >= 1000) return `${tidy(metres / 1000, 1)} km`;
  return `${tidy(metres, metres < 10 ? 2 : 0)} m`;
}

function tidy(value: number, decimals: number): string {
  return String(Number(value.toFixed(decimals)));
}

/** degreesLabel writes a latitude or longitude with as many decimals as a step needs. */
export function degreesLabel(degrees: number, step: number, [positive, negative]: readonly [string, string]): string {
  const decimals = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
  const sign = degrees > 0 ? ` ${positive}` : degrees < 0 ? ` ${negative}` : "";
  return `${Math.abs(degrees).toFixed(decimals)}°${sign}`;
}
