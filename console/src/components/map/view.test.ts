// @vitest-environment node
import { expect, test } from "vitest";
import { fitted, isInView, panned, toMetres, toPixel, zoomed, type View } from "./view";

const view: View = { centre: { x: 100, y: 200 }, metresPerPixel: 10, width: 400, height: 300 };

test("the centre is in the middle, and north is up", () => {
  expect(toPixel(view, { x: 100, y: 200 })).toEqual({ x: 200, y: 150 });
  expect(toPixel(view, { x: 100, y: 300 })).toEqual({ x: 200, y: 140 });
  expect(toMetres(view, { x: 0, y: 0 })).toEqual({ x: -1900, y: 1700 });
});

test("what is under the pointer stays there when one zooms", () => {
  const pointer = { x: 30, y: 250 };
  const before = toMetres(view, pointer);
  const after = toMetres(zoomed(view, 2, pointer), pointer);
  expect(after.x).toBeCloseTo(before.x, 9);
  expect(after.y).toBeCloseTo(before.y, 9);
});

test("zooming ends before the map is a point", () => {
  let near = view;
  for (let i = 0; i < 100; i++) near = zoomed(near, 2);
  expect(near.metresPerPixel).toBe(0.01);
});

test("panning moves the map with the hand", () => {
  expect(toPixel(panned(view, 50, -20), { x: 100, y: 200 })).toEqual({ x: 250, y: 130 });
});

test("all of the bounds is shown, with room at the edges", () => {
  const whole = fitted({ west: 0, south: 0, east: 10_000, north: 20_000 }, 400, 300);
  for (const corner of [{ x: 0, y: 0 }, { x: 10_000, y: 20_000 }]) {
    expect(isInView(whole, toPixel(whole, corner), -40)).toBe(true);
  }
});

test("a single place is shown with a kilometre about it", () => {
  expect(fitted({ west: 5, south: 5, east: 5, north: 5 }, 400, 396).metresPerPixel).toBeCloseTo(1000 / 300, 5);
  expect(fitted(undefined, 0, 0).metresPerPixel).toBeGreaterThan(0);
});
