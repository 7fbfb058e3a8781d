import { beforeEach, expect, test } from "vitest";
import { draftOf, versionOf } from "./draft";
import { objectsOf } from "./objects";
import type { Plan } from "./plan";

const plan: Plan = { name: "patrol", namespace: "team", description: "", propagation: undefined, platforms: [{ number: 1, name: "hq", waypoints: [{ at: 0, latitude: 58, longitude: 8 }] }] };

beforeEach(() => {
  window.sessionStorage.clear();
});

test("a plan is there again after a reload of the page, at its own Scenario only", () => {
  draftOf("ann", "team", "patrol").keep({ plan, version: "" });
  expect(draftOf("ann", "team", "patrol").read()?.plan).toEqual(JSON.parse(JSON.stringify(plan)));
  expect([draftOf("ann", "team", undefined).read(), draftOf("bob", "team", "patrol").read()]).toEqual([undefined, undefined]);
});

test("a draft of which no version is known is kept too", () => {
  draftOf("ann", "team", "patrol").keep({ plan });
  expect(draftOf("ann", "team", "patrol").read()?.version).toBeUndefined();
  expect(draftOf("ann", "team", "patrol").read()?.plan.name).toBe("patrol");
});

test("a draft of another form is left aside", () => {
  window.sessionStorage.setItem("vignette-draft ann /scenarios/edit?team/patrol", JSON.stringify({ plan: { ...plan, platforms: [{}] }, version: "" }));
  expect(draftOf("ann", "team", "patrol").read()).toBeUndefined();
});

test("a change of the spec or of a file is another version, a change of the status is none", () => {
  const { configMap, scenario } = objectsOf(plan);
  const loaded = (generation: number, file: string, status: string) => versionOf({ scenario: { ...scenario, metadata: { ...scenario.metadata, uid: "u", generation, resourceVersion: status } }, files: [{ ...configMap, metadata: { ...configMap.metadata, resourceVersion: file } }], plan });
  expect(loaded(1, "7", "9")).toBe(loaded(1, "7", "8"));
  expect(new Set([loaded(1, "7", "9"), loaded(2, "7", "9"), loaded(1, "8", "9"), versionOf(undefined)]).size).toBe(4);
});
