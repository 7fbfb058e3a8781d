// @vitest-environment node
import { expect, test } from "vitest";
import { around, centreOf, metresBetween, projectionAbout } from "./projection";

const arendal = { latitude: 58.19, longitude: 7.98 };

test("a degree north is some 111 km, a degree east less by the cosine of the latitude", () => {
  const { toMetres } = projectionAbout(arendal);
  expect(toMetres({ latitude: 59.19, longitude: 7.98 }).y).toBeCloseTo(111_377, -2);
  expect(toMetres({ latitude: 58.19, longitude: 8.98 }).x).toBeCloseTo(58_826, -2);
});

test("what is projected comes back to its place", () => {
  const projection = projectionAbout(arendal);
  const back = projection.toPlace(projection.toMetres({ latitude: 58.3, longitude: 7.7 }));
  expect(back.latitude).toBeCloseTo(58.3, 10);
  expect(back.longitude).toBeCloseTo(7.7, 10);
});

test("ways over the date line are short", () => {
  expect(around(359)).toBe(-1);
  const fiji = projectionAbout({ latitude: -17, longitude: 179.9 });
  expect(fiji.toMetres({ latitude: -17, longitude: -179.9 }).x).toBeCloseTo(21_300, -3);
  expect(fiji.toPlace(fiji.toMetres({ latitude: -17, longitude: -179.9 })).longitude).toBeCloseTo(-179.9, 6);
});

test("the centre lies between the extremes, over the date line too", () => {
  const middle = centreOf([{ latitude: 10, longitude: 179 }, { latitude: 20, longitude: -179 }]);
  expect([middle?.latitude, Math.abs(middle?.longitude ?? 0)]).toEqual([15, 180]);
  expect(centreOf([])).toBeUndefined();
});

test("a pole does not divide by zero", () => {
  const { toPlace, toMetres } = projectionAbout({ latitude: 90, longitude: 0 });
  expect(Number.isFinite(toPlace({ x: 1, y: -1 }).longitude)).toBe(true);
  expect(Number.isFinite(toMetres({ latitude: 89, longitude: 120 }).x)).toBe(true);
});

test("distances are those over the ground", () => {
  expect(metresBetween(arendal, { latitude: 58.2, longitude: 7.98 })).toBeCloseTo(1113.8, 0);
});
