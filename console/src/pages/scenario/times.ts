/** fromSeconds writes a time so that it can be typed again: 45s, 1m30s, 1h0m5s. */
export function fromSeconds(seconds: number): string {
  const whole = Math.floor(seconds);
  const rest = Number((seconds - 60 * Math.floor(whole / 60)).toFixed(3));
  const minutes = Math.floor(whole / 60) % 60;
  const hours = Math.floor(whole / 3600);
  if (hours > 0) return `${hours}h${minutes}m${rest}s`;
  return minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`;
}
