// @vitest-environment node
import { expect, test } from "vitest";
import { Refusal } from "./client";
import type { Snapshot } from "./informer";
import type { KubernetesObject } from "./kinds";
import { Merged } from "./merged";

function part(snapshot: Snapshot<KubernetesObject>) {
  return { current: snapshot, subscribe: () => () => undefined, getSnapshot(): Snapshot<KubernetesObject> { return this.current; } };
}

const named = (name: string) => ({ metadata: { name } });
const unknown: Snapshot<KubernetesObject> = { objects: undefined, error: undefined };

test("objects of one namespace are there before those of another", () => {
  const [nor, prt] = [part({ objects: [named("a")], error: undefined }), part(unknown)];
  const merged = new Merged([nor, prt]);
  expect(merged.getSnapshot().objects).toEqual([named("a")]);
  prt.current = { objects: [named("b")], error: undefined };
  expect(merged.getSnapshot().objects).toEqual([named("a"), named("b")]);
});

test("the snapshot is the same until something changes", () => {
  const merged = new Merged([part({ objects: [named("a")], error: undefined })]);
  expect(merged.getSnapshot()).toBe(merged.getSnapshot());
});

test("the refusal of one namespace is told beside the objects of another", () => {
  const refusal = new Refusal(403, "no right");
  const merged = new Merged([part({ objects: [named("a")], error: undefined }), part({ objects: undefined, error: refusal })]);
  expect(merged.getSnapshot()).toEqual({ objects: [named("a")], error: refusal });
});

test("nothing is known before any namespace has answered", () => {
  expect(new Merged([part(unknown)]).getSnapshot().objects).toBeUndefined();
});
