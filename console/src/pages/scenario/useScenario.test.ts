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

test("the order of battle stays when a Scenario is saved, also by another name", () => {
  const orderOfBattle = [{ name: "company", commander: 1, platforms: "1-4", network: "vhf" }];
  const read = loadedOf({ ...scenario, spec: { ...scenario.spec, orderOfBattle } }, [configMap]).plan;
  expect(objectsOf({ ...(read ?? plan), name: "another" }).scenario.spec.orderOfBattle).toEqual(orderOfBattle);
});

test("a Scenario with a seed that would be rounded is not shown with another one", () => {
  const rounded = { model: "Diffraction", frequency: "300MHz", syntheticTerrain: 2 ** 53 } as NonNullable<Plan["propagation"]>;
  expect(() => loadedOf({ ...scenario, spec: { ...scenario.spec, propagation: rounded } }, [configMap])).toThrow("It has a seed above 9007199254740991");
});

test("a Scenario of another format is shown and not edited", () => {
  const synthetic = { ...scenario, spec: { format: "synthetic" as const, synthetic: { pattern: "Grid" as const, duration: "1h", platforms: 4, seed: 1, spacing: "500m" } } };
  expect(loadedOf(synthetic, []).plan).toBeUndefined();
  expect(loadedOf(scenario, []).plan).toBeUndefined();
});
