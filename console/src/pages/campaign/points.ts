import type { Run } from "./round";

/** Point of the matrix with its repeats. */
export interface Point {
  name: string;
  runs: Run[];
}

/** pointsOf runs, in the order in which they first come. */
export function pointsOf(runs: readonly Run[]): Point[] {
  const points = new Map<string, Point>();
  for (const run of runs) {
    const point = points.get(run.point) ?? { name: run.point, runs: [] };
    point.runs.push(run);
    points.set(run.point, point);
  }
  return [...points.values()];
}

/** ofLastSpec are the measured runs, without those of a spec of their point that was edited since. */
export function ofLastSpec(runs: readonly Run[]): Run[] {
  const last = new Map(runs.flatMap(({ point, specDigest }) => (specDigest === undefined ? [] : [[point, specDigest] as const])));
  return runs.filter(({ point, specDigest, measured }) => measured !== undefined && specDigest === last.get(point));
}

/** withWords are the runs whose name, levels, phase or message have all the words. */
export function withWords(runs: readonly Run[], search: string): Run[] {
  const words = search.toLowerCase().split(" ").filter(Boolean);
  return runs.filter(({ name, levels, phase, message, uid }) => {
    const text = `${name} ${Object.values(levels).join(" ")} ${phase} ${message} ${uid}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
