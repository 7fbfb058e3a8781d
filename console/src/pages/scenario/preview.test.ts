// @vitest-environment node
import { expect, test } from "vitest";
import { hopsAt, sharesOf, totalOf, type HopsAt } from "./preview";

const hops: HopsAt[] = [
  { atSeconds: 0, counts: [0, 4, 2], mean: 1.33, parts: 1 },
  { atSeconds: 60, counts: [2, 2, 1, 0, 0, 0, 0, 1], mean: 2.75, parts: 2 },
];

test("the hops are those of the last moment", () => {
  expect(hopsAt(hops, 59)?.atSeconds).toBe(0);
  expect(hopsAt(hops, 300)?.atSeconds).toBe(60);
  expect(hopsAt([], 0)).toBeUndefined();
});

test("shares are of all pairs, with those without a way", () => {
  const shares = sharesOf(hops[1] ?? { counts: [] });
  expect(shares.map(({ percent }) => Math.round(percent))).toEqual([33, 17, 0, 0, 0, 17, 33]);
  expect(shares.map(({ label }) => label)).toEqual(["1 hop", "2 hops", "3 hops", "4 hops", "5 hops", "6 and more", "no way"]);
  expect(sharesOf({ counts: [] }).every(({ percent }) => percent === 0)).toBe(true);
});

test("the total is over all moments", () => {
  expect(totalOf(hops).counts).toEqual([2, 6, 3, 0, 0, 0, 0, 1]);
});
