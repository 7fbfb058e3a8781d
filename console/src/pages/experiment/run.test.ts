// @vitest-environment node
import { expect, test } from "vitest";
import type { RunState } from "../../archive/types";
import { Refusal } from "../../kubernetes/client";
import type { Experiment } from "../../types";
import { keyOf, pauseOf } from "./run";

function experiment(phase: "Running" | "Succeeded" | "Failed", total = 2): Experiment {
  return { metadata: { name: "e", namespace: "nor", uid: "1" }, spec: { apps: [], networks: [], nodes: [] }, status: { phase, nodes: { total } } };
}

const state = (more: object) => ({ plan: { phase: "Succeeded" }, ...more }) as unknown as RunState;

test("a run is read once more when it has ended", () => {
  expect(keyOf(experiment("Running"), "live")).not.toEqual(keyOf(experiment("Succeeded"), "live"));
});

test("a run that has ended is asked for until the archive has its results", () => {
  expect(pauseOf(experiment("Running"), state({}), null)).toBe(2_000);
  expect(pauseOf(experiment("Succeeded"), state({}), null)).toBe(10_000);
  expect(pauseOf(experiment("Succeeded"), state({ results: {} }), null)).toBe(false);
  expect(pauseOf(experiment("Failed"), state({ plan: { phase: "Failed" } }), null)).toBe(false);
});

test("large runs, and those that may not be read, are asked for less often", () => {
  expect(pauseOf(experiment("Running", 500), undefined, null)).toBe(5_000);
  expect(pauseOf(experiment("Running"), undefined, new Refusal(403, "you may not read runs"))).toBe(30_000);
});
