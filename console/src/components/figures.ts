import type { Interval } from "../archive/types";

/** nothing stands for a figure that there is not. */
export const nothing = "–";

/** atMostThreeDigits writes a number for the marks of an axis, without zeros at its end. */
export function atMostThreeDigits(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(3))) : nothing;
}

/** digits writes a number with three significant digits, or more before the decimal point. */
export function digits(value: number): string {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(3)))));
  return value.toFixed(Math.min(6, Math.max(0, 2 - magnitude)));
}

type Figure = number | null | undefined;

/** duration writes seconds in the unit that suits them, such as 1.45 s, 23.1 ms or 400 µs. */
export function duration(seconds: Figure): string {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return nothing;
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 0.9995e-3) return `${digits(seconds * 1e6)} µs`;
  if (size < 0.9995) return `${digits(seconds * 1e3)} ms`;
  return `${digits(seconds)} s`;
}

/** tickDuration writes the marks of an axis of times from least to greatest: all in one unit, and as exact as their distance needs. */
export function tickDuration(least: number, greatest: number): (seconds: number) => string {
  const [unit, name] = greatest < 1e-3 ? [1e-6, "µs"] : greatest < 1 ? [1e-3, "ms"] : [1, "s"];
  const distance = (greatest - least) / 10 / unit;
  const decimals = distance > 0 ? Math.min(6, Math.max(0, Math.ceil(-Math.log10(distance)))) : 2;
  return (seconds) => `${Number((seconds / unit).toFixed(decimals))} ${name}`;
}

/** metres writes a distance, such as 89.0 m. */
export function metres(value: Figure): string {
  return value === null || value === undefined || Number.isNaN(value) ? nothing : `${digits(value)} m`;
}

/** percent writes a share. It never rounds what is less than all to 100 %, nor what is more than nothing to 0 %. */
export function percent(value: Figure): string {
  if (value === null || value === undefined || Number.isNaN(value)) return nothing;
  if (value > 99.99 && value < 100) return "> 99.99 %";
  if (value > 0 && value < 0.01) return "< 0.01 %";
  return `${Number(value.toFixed(2))} %`;
}

/** count writes a whole number with a thin space between thousands. */
export function count(value: Figure): string {
  if (value === null || value === undefined) return nothing;
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** bytes writes a size in decimal units, such as 1.25 MB. */
export function bytes(value: Figure): string {
  if (value === null || value === undefined) return nothing;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? String(Math.round(size)) : digits(size)} ${units[unit] ?? ""}`;
}

/** binarySize writes a size in the binary units of memory, such as 512 MiB, 1.50 GiB or 4.00 TiB. */
export function binarySize(value: number): string {
  if (value > 0 && value <= 1023 * 2 ** 10) return `${Math.ceil(value / 2 ** 10)} KiB`;
  if (value >= 2 ** 40) return `${(value / 2 ** 40).toFixed(value < 10 * 2 ** 40 ? 2 : 0)} TiB`;
  if (value > 0 && value < 2 ** 30) return `${Math.ceil(value / 2 ** 20)} MiB`;
  return `${(value / 2 ** 30).toFixed(value < 10 * 2 ** 30 ? 2 : 0)} GiB`;
}

/** runSize writes the size of a run in the archive, as `vignette runs list` does. Older servers do not say it. */
export function runSize(size: number | undefined): string {
  if (size === undefined) return nothing;
  const [unit, name] = size >= 2 ** 30 ? [2 ** 30, "GiB"] : size >= 2 ** 20 ? [2 ** 20, "MiB"] : [2 ** 10, "KiB"];
  return `${(size / unit).toFixed(2)} ${name}`;
}

/** bytesPerSecond of traffic. Below 1 kB/s it has decimals too. */
export function bytesPerSecond(value: Figure): string {
  if (value === null || value === undefined) return nothing;
  return `${value < 999.5 ? `${digits(value)} B` : bytes(value)}/s`;
}

/** range writes an interval as [low, high]; it is empty without one. */
export function range(interval: Interval | null | undefined, write: (value: number) => string): string {
  return interval ? `[${write(interval.low)}, ${write(interval.high)}]` : "";
}

/** yesOrNo writes a truth value; undefined where it is not known. */
export function yesOrNo(value: boolean | null | undefined): string | undefined {
  return value === null || value === undefined ? undefined : value ? "yes" : "no";
}

/** many writes a number of things with the word that fits, such as 1 run or 3 runs. */
export function many(n: number, one: string, several = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : several}`;
}

/** probability writes a p value. */
export function probability(p: Figure, tooFew = false): string {
  if (tooFew) return "too few";
  if (p === null || p === undefined) return nothing;
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}
