import { Refusal } from "../kubernetes/client";

const afterNone = 10_000;
const afterRefusal = 30_000;

/** askAgainAfter so many milliseconds: less often for what there is not, and rarely for what the user may not read. */
export function askAgainAfter(error: Error | null, usual: number): number {
  if (!(error instanceof Refusal) || error.status < 400 || error.status >= 500) return usual;
  return Math.max(usual, error.status === 404 ? afterNone : afterRefusal);
}
