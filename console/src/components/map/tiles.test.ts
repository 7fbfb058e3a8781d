// @vitest-environment node
import { expect, test } from "vitest";
import { columnOf, latitudeOf, longitudeOf, rowOf, tilesBetween, zoomFor } from "./tiles";

test("a place and its tile are those of the web's maps", () => {
  // Oslo at zoom 10, as OpenStreetMap numbers its tiles.
  expect([Math.floor(columnOf(10.75, 10)), Math.floor(rowOf(59.91, 10))]).toEqual([542, 297]);
  expect([longitudeOf(columnOf(7.9, 12), 12), latitudeOf(rowOf(58.1, 12), 12)].map((degrees) => Number(degrees.toFixed(6)))).toEqual([7.9, 58.1]);
});

test("the zoom follows the scale, within what the map has", () => {
  expect(zoomFor(156_543, 0, [0, 15])).toBe(0);
  expect(zoomFor(156_543 / 2 ** 10, 0, [0, 15])).toBe(10);
  expect(zoomFor(156_543 / 2 ** 10, 60, [0, 15])).toBe(9);
  expect(zoomFor(0.1, 0, [0, 14])).toBe(14);
  expect(zoomFor(156_543, 0, [5, 14])).toBe(5);
});

test("the tiles of a view cover it, also across the date line, unless there are too many", () => {
  expect(tilesBetween({ latitude: 58.05, longitude: 7.8 }, { latitude: 58.2, longitude: 8.1 }, 9)).toEqual([
    { z: 9, x: 267, y: 153 },
    { z: 9, x: 267, y: 154 },
  ]);
  expect(tilesBetween({ latitude: -1, longitude: 179.5 }, { latitude: 1, longitude: -179.5 }, 3).map(({ x }) => x)).toEqual([7, 0, 7, 0]);
  expect(tilesBetween({ latitude: 50, longitude: 0 }, { latitude: 60, longitude: 20 }, 14)).toEqual([]);
});
