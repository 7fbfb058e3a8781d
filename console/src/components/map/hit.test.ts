// @vitest-environment node
import { expect, test } from "vitest";
import { distanceToSegment, nearest, nearestSegment } from "./hit";

test("the nearest point within reach is hit", () => {
  const points = [{ x: 0, y: 0 }, undefined, { x: 10, y: 0 }];
  expect(nearest(points, { x: 7, y: 1 }, 12)).toBe(2);
  expect(nearest(points, { x: 30, y: 0 }, 12)).toBe(-1);
});

test("a line ends at its ends", () => {
  expect(distanceToSegment({ x: 5, y: 3 }, { x: 0, y: 0 }, { x: 10, y: 0 })).toBe(3);
  expect(distanceToSegment({ x: 13, y: 4 }, { x: 0, y: 0 }, { x: 10, y: 0 })).toBe(5);
  expect(distanceToSegment({ x: 3, y: 4 }, { x: 0, y: 0 }, { x: 0, y: 0 })).toBe(5);
});

test("the nearest line within reach is hit", () => {
  const lines = [[{ x: 0, y: 0 }, { x: 10, y: 0 }], undefined, [{ x: 0, y: 8 }, { x: 10, y: 8 }]] as const;
  expect(nearestSegment(lines, { x: 5, y: 6 }, 6)).toBe(2);
  expect(nearestSegment(lines, { x: 5, y: 20 }, 6)).toBe(-1);
});
