// @vitest-environment node
import { expect, test } from "vitest";
import type { Plan } from "./plan";
import type { Preview } from "./preview";
import { asPlan, handlesOf, labelsOf, nodesOf, sceneOf } from "./scene";

const plan: Plan = {
  name: "patrol",
  namespace: "default",
  description: "",
  propagation: undefined,
  platforms: [
    { number: 1, name: "hq", waypoints: [{ at: 0, latitude: 58.1, longitude: 7.9 }] },
    { number: 2, name: "", waypoints: [{ at: 0, latitude: 58.1, longitude: 7.9 }, { at: 60, latitude: 58.2, longitude: 7.9 }] },
  ],
};
const preview: Preview = {
  durationSeconds: 60,
  platforms: [{ number: 1, track: [[0, 58.1, 7.9, 0]] }, { number: 2, track: [] }],
  pathloss: true,
  warnings: [],
  limitDB: 121,
  atSeconds: 0,
  links: [{ from: 1, to: 2, pathloss: 100 }, { from: 2, to: 1, pathloss: 119 }, { from: 9, to: 1, pathloss: 90 }],
  leftOut: 0,
  hops: [],
  between: [],
  terrain: null,
};

test("links join platforms by the names that they have on the map", () => {
  const scene = sceneOf(nodesOf(plan.platforms), preview, labelsOf(plan.platforms, undefined), "hq", []);
  expect(scene.links).toEqual([{ from: "2", to: "hq", linkClass: 0, forward: 2, backward: 21 }]);
  expect([...scene.hops]).toEqual([["hq", 0], ["2", 1]]);
});

test("the waypoints of the selected platform can be dragged", () => {
  expect(handlesOf(plan.platforms[1], 1).map(({ id, label, selected }) => [id, label, selected])).toEqual([["2/0", "1", false], ["2/1", "2", true]]);
  expect(handlesOf(undefined, 0)).toEqual([]);
});

test("movement of another format becomes waypoints, without platforms that are nowhere", () => {
  expect(asPlan(preview, plan).platforms).toEqual([{ number: 1, name: "", waypoints: [{ at: 0, latitude: 58.1, longitude: 7.9, altitude: 0 }] }]);
});
