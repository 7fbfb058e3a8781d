// @vitest-environment node
import { expect, test } from "vitest";
import { degreesLabel, lengthLabel, multiples, niceStep, scaleBar } from "./grid";

test("steps are those that people count in", () => {
  expect([0.03, 0.1, 0.7, 2, 2.1, 6, 1000].map(niceStep).map((v) => Number(v.toPrecision(6)))).toEqual([0.05, 0.1, 1, 2, 5, 10, 1000]);
});

test("lines lie at multiples of the step", () => {
  expect(multiples(5, -7, 11)).toEqual([-5, 0, 5, 10]);
});

test("the scale bar is as long as there is room for", () => {
  expect(scaleBar(10)).toMatchObject({ metres: 1000, pixels: 100, label: "1 km" });
  expect(scaleBar(0.7).pixels).toBeLessThanOrEqual(120);
  for (const scale of [0.03, 1, 3.7, 42, 999]) expect(scaleBar(scale).pixels).toBeGreaterThan(40);
});

test("lengths and degrees are written as on maps", () => {
  expect([0.5, 250, 1500, 25_000].map(lengthLabel)).toEqual(["0.5 m", "250 m", "1.5 km", "25 km"]);
  expect(degreesLabel(58.2, 0.05, ["N", "S"])).toBe("58.20° N");
  expect(degreesLabel(-8, 1, ["E", "W"])).toBe("8° W");
  expect(degreesLabel(0, 1, ["E", "W"])).toBe("0°");
});
