import type { WirePoint } from "../../components/map/api";
import type { Terrain } from "../../components/map/terrain";
import { askJSON } from "../../kubernetes/client";
import type { components } from "../../types/console.gen";

/** Preview is what the console's server says about a Scenario (internal/console/mapdata). */
export interface Preview {
  durationSeconds: number;
  platforms: { number: number; track: WirePoint[] }[];
  /** pathloss reports whether any pathloss is known. */
  pathloss: boolean;
  warnings: string[] | null;
  limitDB: number;
  atSeconds: number;
  links: { from: number; to: number; pathloss: number }[];
  leftOut: number;
  hops: HopsAt[];
  between: { atSeconds: number; pathloss: number | null }[];
  terrain: Terrain | null;
}

/** HopsAt are numbers of ordered pairs: without a way, then by hops from 1 on. */
export interface HopsAt {
  atSeconds: number;
  counts: number[];
  mean: number;
  parts: number;
}

export interface PreviewQuery {
  at: number;
  limit: number;
  /** between two platforms. */
  pair: readonly [number, number] | undefined;
}

export function askPreview(yaml: string, { at, limit, pair }: PreviewQuery, signal: AbortSignal): Promise<Preview> {
  const parameters = new URLSearchParams({ at: String(at), limit: String(limit), ...(pair && { from: String(pair[0]), to: String(pair[1]) }) });
  return askJSON<components["schemas"]["ScenarioPreview"]>(`/console/v1/scenario/preview?${parameters.toString()}`, { method: "POST", body: yaml, headers: { "content-type": "application/yaml" }, signal });
}

/** hopsAt a time are those of the last moment no later. */
export function hopsAt(hops: readonly HopsAt[], at: number): HopsAt | undefined {
  return hops.findLast((one) => one.atSeconds <= at) ?? hops[0];
}

const columns = 6;

/** sharesOf pairs in percent: by 1 to 5 hops, by 6 or more, and without a way. */
export function sharesOf({ counts }: Pick<HopsAt, "counts">): { label: string; percent: number }[] {
  const pairs = counts.reduce((sum, n) => sum + n, 0);
  const shares = Array.from({ length: columns }, (_, i) => {
    const n = i + 1 < columns ? (counts[i + 1] ?? 0) : counts.slice(columns).reduce((sum, more) => sum + more, 0);
    return { label: i + 1 < columns ? `${i + 1} ${i === 0 ? "hop" : "hops"}` : `${columns} and more`, percent: percentOf(n, pairs) };
  });
  return [...shares, { label: "no way", percent: percentOf(counts[0] ?? 0, pairs) }];
}

function percentOf(n: number, of: number): number {
  return of === 0 ? 0 : (100 * n) / of;
}

/** totalOf hops over all moments. */
export function totalOf(hops: readonly HopsAt[]): { counts: number[] } {
  const counts: number[] = [];
  for (const one of hops) one.counts.forEach((n, i) => (counts[i] = (counts[i] ?? 0) + n));
  return { counts };
}
