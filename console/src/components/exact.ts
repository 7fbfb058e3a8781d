/** isExact reports whether a value is no whole number that JavaScript would round. */
export function isExact(value: unknown): boolean {
  return !Number.isInteger(value) || Number.isSafeInteger(value);
}
