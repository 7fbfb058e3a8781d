/** utc writes a time as 2026-11-27 07:24:18Z. */
export function utc(time: Date): string {
  return time.toISOString().replace("T", " ").replace(/\.\d+Z$/, "Z");
}

/** span writes seconds as people say them, such as 45s, 2m05s or 1h02m. */
export function span(seconds: number): string {
  const whole = Math.round(Math.abs(seconds));
  const sign = seconds < 0 && whole > 0 ? "-" : "";
  if (whole < 60) return `${sign}${whole}s`;
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  if (whole < 48 * 3600) return `${sign}${Math.floor(whole / 3600)}h${two(Math.floor((whole % 3600) / 60))}m`;
  return `${sign}${Math.floor(whole / 86400)}d${two(Math.floor((whole % 86400) / 3600))}h`;
}

/** two writes a number with two digits at least. */
export function two(n: number): string {
  return String(n).padStart(2, "0");
}

/** fromT0 writes a time as T0+2m05s. */
export function fromT0(time: Date, t0: Date): string {
  return afterT0((time.getTime() - t0.getTime()) / 1000);
}

/** afterT0 writes seconds after T0 as T0+2m05s. */
export function afterT0(seconds: number): string {
  return seconds < 0 ? `T0-${span(-seconds)}` : `T0+${span(seconds)}`;
}

/** seconds that a duration of Kubernetes has, such as 1h2m3.5s or 100ms; NaN if it is none. */
export function secondsOf(duration: string): number {
  const units: Record<string, number> = { h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6, µs: 1e-6, ns: 1e-9 };
  let sum = 0;
  let rest = duration;
  while (rest !== "") {
    const part = /^(\d+(?:\.\d*)?|\.\d+)(ms|us|µs|ns|h|m|s)/.exec(rest);
    const [whole, amount, unit] = part ?? [];
    if (!whole || !amount || !unit) return duration === "0" ? 0 : NaN;
    sum += Number(amount) * (units[unit] ?? NaN);
    rest = rest.slice(whole.length);
  }
  return duration === "" ? NaN : sum;
}
