// @vitest-environment node
import { expect, test } from "vitest";
import { added, changed, extended, moved, removed, secondsTyped, speedTyped, timed, without, type Plan, type Platform } from "./plan";

const empty: Plan = { name: "patrol", namespace: "default", description: "", platforms: [], propagation: undefined };
const place = { latitude: 58.19, longitude: 7.98 };

test("a new platform has the lowest free number", () => {
  const three = added(added(added(empty, place), place), place);
  expect(added(removed(three, 2), place).platforms.map(({ number }) => number)).toEqual([1, 3, 2]);
});

const platform: Platform = { number: 1, name: "", waypoints: [{ at: 0, ...place }] };

test("a new waypoint is reached at the speed", () => {
  const way = extended(platform, { latitude: 58.2, longitude: 7.98 }, 10);
  expect(way.waypoints[1]).toEqual({ at: 112, latitude: 58.2, longitude: 7.98 });
});

test("a dragged waypoint keeps its time and its altitude", () => {
  const high: Platform = { ...platform, waypoints: [{ at: 30, ...place, altitude: 120 }] };
  expect(moved(high, 0, { latitude: 58.3, longitude: 8 }).waypoints).toEqual([{ at: 30, latitude: 58.3, longitude: 8, altitude: 120 }]);
});

test("waypoints stay in order of time", () => {
  const way = extended(extended(platform, { latitude: 58.2, longitude: 7.98 }, 10), place, 10);
  expect(timed(way, 0, 500).waypoints.map(({ at }) => at)).toEqual([112, 224, 500]);
  expect(without(way, 1).waypoints.map(({ at }) => at)).toEqual([0, 224]);
});

test("only the platform that is meant changes", () => {
  const two = added(added(empty, place), place);
  expect(changed(two, 2, (p) => ({ ...p, name: "hq" })).platforms.map(({ name }) => name)).toEqual(["", "hq"]);
});

test("times and speeds are read as people type them", () => {
  expect(["90", " 1m30s", "1:30", "1:00:05", "soon", "-5"].map(secondsTyped)).toEqual([90, 90, 90, 3605, NaN, NaN]);
  expect(["36km/h", "1.4 m/s", "fast", "0km/h"].map(speedTyped)).toEqual([10, 1.4, NaN, NaN]);
});
