// @vitest-environment node
import { expect, test } from "vitest";
import { objectsOf } from "./objects";
import type { Plan } from "./plan";
import { loadedOf } from "./loaded";

const plan: Plan = {
  name: "patrol",
  namespace: "team-nor",
  description: "two cars",
  platforms: [{ number: 1, name: "hq", waypoints: [{ at: 0, latitude: 58.1, longitude: 7.9 }] }],
  propagation: { model: "TwoRay", frequency: "300MHz", antennaHeight: "3m", exponent: "3", shadowing: "0dB", shadowingDistance: "50m" },
};
const { configMap, scenario } = objectsOf(plan);

test("a saved plan is edited again as it was", () => {
  expect(loadedOf(scenario, [configMap]).plan).toEqual(plan);
});

test("a Scenario of another format is shown and not edited", () => {
  const synthetic = { ...scenario, spec: { format: "synthetic" as const, synthetic: { pattern: "Grid" as const, duration: "1h", platforms: 4, seed: 1, spacing: "500m" } } };
  expect(loadedOf(synthetic, []).plan).toBeUndefined();
  expect(loadedOf(scenario, []).plan).toBeUndefined();
});
