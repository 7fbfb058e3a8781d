// @vitest-environment node
import { expect, test } from "vitest";
import { exaggerationOf, shaded, shadeAt, type Terrain } from "./terrain";

function terrain(heights: (number | null)[][]): Terrain {
  return { west: 7.9, south: 58.1, cellDegrees: 0.001, columns: heights[0]?.length ?? 0, rows: heights.length, heights: heights.flat() };
}

const flat = terrain([[5, 5, 5], [5, 5, 5], [5, 5, 5]]);

test("slopes to the north-west are brighter than flat ground, those to the south-east darker", () => {
  const facingWest = terrain([[0, 30, 60], [0, 30, 60], [0, 30, 60]]);
  const facingSouth = terrain([[60, 60, 60], [30, 30, 30], [0, 0, 0]]);
  const level = shadeAt(flat, 1, 1) ?? 0;
  expect(level).toBeCloseTo(Math.SQRT1_2, 5);
  expect(shadeAt(facingWest, 1, 1)).toBeGreaterThan(level);
  expect(shadeAt(facingSouth, 1, 1)).toBeLessThan(level);
});

test("unknown cells are transparent and do not spoil their neighbours", () => {
  const hole = terrain([[5, null], [5, 5]]);
  const pixels = shaded(hole, "light");
  expect([pixels[3], pixels[7]]).toEqual([255, 0]);
  expect(shadeAt(hole, 0, 0)).toBeCloseTo(Math.SQRT1_2, 5);
});

test("high ground differs from low ground and from water, in light and dark", () => {
  for (const scheme of ["light", "dark"] as const) {
    const pixels = shaded(terrain([[0, 0, 0, 10, 10, 10, 400, 400, 400]]), scheme);
    const colour = (column: number) => [...pixels.slice(4 * column, 4 * column + 3)].join();
    expect(new Set([colour(0), colour(4), colour(8)]).size).toBe(3);
  }
});

test("plains are exaggerated, and mountains flattened", () => {
  const slope = (metres: number) => exaggerationOf(terrain([[0, metres, 2 * metres], [0, metres, 2 * metres], [0, metres, 2 * metres]]));
  expect(slope(2)).toBeGreaterThan(4);
  expect(slope(100)).toBeLessThan(0.5);
  expect(exaggerationOf(flat)).toBe(8);
});
