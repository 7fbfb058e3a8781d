// @vitest-environment node
import { expect, test } from "vitest";
import { inCircle, isNowhere } from "./circle";
import { projectionAbout } from "./projection";

const nodes = ["nor", "usa", "ger", "ita"].map((name) => ({ name, symbol: "", track: [] }));

test("nodes without positions stand in a circle, at equal distances", () => {
  const { toMetres } = projectionAbout({ latitude: 0, longitude: 0 });
  const places = inCircle(nodes).map(({ track: [place] }) => toMetres(place ?? { latitude: NaN, longitude: NaN }));
  const gaps = places.map(({ x, y }, i) => Math.hypot(x - (places.at(i - 1)?.x ?? NaN), y - (places.at(i - 1)?.y ?? NaN)));
  expect(Math.max(...gaps) / Math.min(...gaps)).toBeLessThan(1.01);
  expect(Math.min(...gaps)).toBeGreaterThan(1000);
});

test("two nodes stand beside each other, the first one at the left", () => {
  const [first, second] = inCircle(nodes.slice(0, 2)).map(({ track: [place] }) => place);
  expect(first?.latitude).toBeCloseTo(second?.latitude ?? NaN);
  expect(first?.longitude).toBeLessThan(second?.longitude ?? NaN);
});

test("nodes are nowhere only if none of them has a position", () => {
  expect(isNowhere(nodes)).toBe(true);
  expect(isNowhere([])).toBe(false);
  expect(isNowhere([...nodes, { name: "hq", symbol: "", track: [{ at: 0, latitude: 58, longitude: 8 }] }])).toBe(false);
});

test("on the circle nothing is reported, as its places mean nothing", () => {
  const [first] = inCircle([{ name: "hq", symbol: "", track: [], reported: [{ at: 0, latitude: 58, longitude: 8 }] }]);
  expect(first?.reported).toEqual([]);
});
