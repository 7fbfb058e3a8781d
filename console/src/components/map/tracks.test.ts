// @vitest-environment node
import { expect, test } from "vitest";
import { durationOf, movesAt, placeAt, reportedAt, type Track } from "./tracks";

const patrol: Track = [
  { at: 10, latitude: 58, longitude: 8, altitude: 0 },
  { at: 20, latitude: 58.2, longitude: 8, altitude: 100 },
  { at: 20, latitude: 59, longitude: 8, altitude: 100 },
  { at: 30, latitude: 59, longitude: 9, altitude: 100 },
];

test("before its first point a platform is nowhere", () => {
  expect(placeAt(patrol, 9.9)).toBeUndefined();
  expect(placeAt([], 0)).toBeUndefined();
});

test("between two points it moves evenly", () => {
  expect(placeAt(patrol, 15)).toEqual({ latitude: 58.1, longitude: 8, altitude: 50 });
});

test("of two points at one moment the last one counts", () => {
  expect(placeAt(patrol, 20)?.latitude).toBe(59);
});

test("after its last point it stays", () => {
  expect(placeAt(patrol, 1000)).toMatchObject({ latitude: 59, longitude: 9 });
  expect([movesAt(patrol, 15), movesAt(patrol, 1000)]).toEqual([true, false]);
});

test("a reported position holds from its reception until the next", () => {
  expect([9.9, 10, 19.9, 25].map((at) => reportedAt(patrol, at)?.latitude)).toEqual([undefined, 58, 58, 59]);
  expect(reportedAt(undefined, 15)).toBeUndefined();
});

test("it crosses the date line the short way", () => {
  const crossing = [{ at: 0, latitude: 0, longitude: 179.5 }, { at: 10, latitude: 0, longitude: -179.5 }];
  expect(Math.abs(placeAt(crossing, 5)?.longitude ?? 0)).toBe(180);
});

test("the duration is that of the longest track", () => {
  expect(durationOf([patrol, []])).toBe(30);
  expect(durationOf([])).toBe(0);
});
