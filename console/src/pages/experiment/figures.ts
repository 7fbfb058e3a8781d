/** figure writes a count with spaces between thousands. */
export function figure(n: number): string {
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, " ");
}

/** significant writes a number with three significant digits. */
export function significant(n: number): string {
  return Number.isFinite(n) ? String(Number(n.toPrecision(3))) : "–";
}

/** seconds writes a short time with its unit, such as 12.5 ms. */
export function seconds(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0 || size >= 1) return `${significant(value)} s`;
  return size >= 1e-3 ? `${significant(1e3 * value)} ms` : `${significant(1e6 * value)} µs`;
}

/** bytes writes a size with its unit, such as 1.5 MB. */
export function bytes(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  let size = value;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit++;
  }
  return `${significant(size)} ${units[unit] ?? ""}`;
}

/** percent writes a share such as 99.83 %. Less than everything is never written as 100 %. */
export function percent(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const rounded = Math.floor(100 * value + 1e-9) / 100;
  return `${rounded} %`;
}
