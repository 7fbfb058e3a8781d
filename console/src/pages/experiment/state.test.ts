// @vitest-environment node
import { expect, test } from "vitest";
import type { Experiment } from "../../types";
import { courseOf, isOver, isWaiting, originOf, progressOf, stage, whyWaiting } from "./state";

function experiment(status: Experiment["status"], spec: Partial<Experiment["spec"]> = {}, metadata: object = {}): Experiment {
  return { metadata: { name: "e", namespace: "team", ...metadata }, spec: { apps: [], networks: [], nodes: [], ...spec }, ...(status && { status }) };
}

test("an experiment says at which stage it is, as the command line does", () => {
  expect(stage(experiment(undefined))).toBe("Submitted");
  expect(stage(experiment({ phase: "Queued" }))).toBe("Queued");
  expect(stage(experiment({ phase: "Running", step: "stop" }))).toBe("Running");
  expect(stage(experiment({ phase: "Running", step: "stop" }, { stop: true }))).toBe("Stopping");
  expect(stage(experiment({ phase: "Running", step: "drain" }, { stop: true }))).toBe("Draining");
});

test("only an ended experiment is over, and only one without room waits", () => {
  expect(["Queued", "Running", "Succeeded", "Failed"].map((phase) => isOver(experiment({ phase } as Experiment["status"])))).toEqual([false, false, true, true]);
  expect(isWaiting(experiment(undefined))).toBe(true);
  expect(isWaiting(experiment({ phase: "Provisioning" }))).toBe(false);
});

test("a run's course counts from T0 and stops at its end", () => {
  const t0 = "2026-11-27T07:00:00.500000Z";
  const at = Date.parse("2026-11-27T07:01:00.500Z");
  const running = courseOf(experiment({ t0 }, { duration: "5m" }), at);
  expect(running).toMatchObject({ elapsed: 60, duration: 300, end: Date.parse("2026-11-27T07:05:00.500Z") });
  const ended = courseOf(experiment({ t0, completionTime: "2026-11-27T07:00:31Z" }, { duration: "5m" }), at);
  expect(ended).toMatchObject({ elapsed: 30.5, end: Date.parse("2026-11-27T07:00:31Z") });
  expect(courseOf(experiment({ t0 }), at)).toMatchObject({ duration: undefined, end: undefined });
  expect(courseOf(experiment({}), at)).toBeUndefined();
});

test("progress is a share of a hundred, and absent where it is not one", () => {
  expect(["42%", "250%", "", "many"].map((progress) => progressOf(experiment({ progress })))).toEqual([42, 100, undefined, undefined]);
});

test("an experiment that waits says why", () => {
  const condition = { lastTransitionTime: "", reason: "NoRoom", observedGeneration: 1 };
  const conditions = [
    { ...condition, type: "Accepted", status: "True" as const, message: "every reference is valid" },
    { ...condition, type: "Admitted", status: "False" as const, message: "2 of 10 nodes have no room" },
  ];
  expect(whyWaiting(experiment({ message: "waits", conditions }))).toBe("2 of 10 nodes have no room");
  expect(whyWaiting(experiment({ message: "waits" }))).toBe("waits");
});

test("an experiment names the campaign and the run that it comes from", () => {
  const labels = { "vignette.dev/campaign": "c", "vignette.dev/campaign-round": "2", "vignette.dev/campaign-point": "a-b", "vignette.dev/rerun-of": "uid-1" };
  const origin = originOf(experiment({}, {}, { labels, annotations: { "vignette.dev/rerun": '{"name":"first","namespace":"other"}' } }));
  expect(origin.campaign).toEqual({ name: "c", round: "2", point: "a-b" });
  expect(origin.earlier).toEqual({ relation: "Rerun of", namespace: "other", name: "first", uid: "uid-1" });
});

test("an annotation that is no JSON is left aside", () => {
  const origin = originOf(experiment({}, {}, { labels: { "vignette.dev/based-on": "uid-1" }, annotations: { "vignette.dev/rerun": "{" } }));
  expect(origin.earlier).toEqual({ relation: "Based on", namespace: "team", name: "", uid: "uid-1" });
});

function createdWith(...managedFields: object[]): string | undefined {
  return originOf(experiment({}, {}, { managedFields })).createdWith;
}

test("the program that wrote the nodes has created the experiment, although the operator wrote in the same second", () => {
  const nodes = { "f:spec": { "f:nodes": {} } };
  const finalizer = { manager: "operator", operation: "Update", time: "2026-01-01T00:00:00Z", fieldsV1: { "f:metadata": { "f:finalizers": {} } } };
  const status = { manager: "operator", operation: "Update", time: "2026-01-01T00:00:00Z", subresource: "status", fieldsV1: { "f:status": {} } };
  const stop = { manager: "vignette-console", operation: "Update", time: "2026-01-01T00:00:00Z", fieldsV1: { "f:spec": { "f:stop": {} } } };
  expect(createdWith(finalizer, status, stop, { manager: "vignette-cli", operation: "Update", time: "2026-01-01T00:00:00Z", fieldsV1: nodes })).toBe("vignette");
  expect(createdWith({ manager: "kubectl-client-side-apply", time: "2026-01-01T00:00:00Z", fieldsV1: nodes }, finalizer)).toBe("kubectl");
  expect(createdWith(finalizer, { manager: "vignette-console", time: "2026-01-01T00:00:00Z", fieldsV1: nodes })).toBe("the console");
  expect(createdWith(finalizer, { manager: "argocd-controller", time: "2026-01-01T00:00:00Z", fieldsV1: nodes })).toBe("argocd-controller");
});
