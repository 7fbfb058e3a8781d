// @vitest-environment node
import { expect, test } from "vitest";
import { findingsAt, innerFirst, stepsOf, wordsAt, type Finding } from "./findings";

const object = { spec: { networks: [{ name: "wan" }], timeline: [{ at: "5s" }, { at: "65s" }], nodes: [{ name: "1" }, { name: "0" }] } };

test("an element is found by its name, its time or its place", () => {
  expect(stepsOf("spec.networks[wan].link.rate", object)).toEqual(["spec", "networks", 0, "link", "rate"]);
  expect(stepsOf("spec.timeline[65s].at", object)).toEqual(["spec", "timeline", 1, "at"]);
  expect(stepsOf("spec.networks[0]", object)).toEqual(["spec", "networks", 0]);
  expect(stepsOf("spec.nodes[0]", object)).toEqual(["spec", "nodes", 1]);
  expect(stepsOf("", object)).toEqual([]);
});

const findings: Finding[] = [
  { path: "spec.networks[0].link", message: "two models" },
  { path: "spec.networks[0].link.rate", message: "no unit" },
  { path: "spec.seed", message: "odd", warning: true },
  { message: "of the whole" },
];

test("a field has its own errors, and those within it where the form does not show them", () => {
  expect(wordsAt(findings, object, ["spec", "networks", 0, "link"])).toBe("two models");
  expect(wordsAt(findings, object, ["spec", "networks", 0], true)).toBe("two models; no unit");
});

test("a warning is no error", () => {
  expect(wordsAt(findings, object, ["spec", "seed"])).toBeUndefined();
  expect(findingsAt(findings, object, ["spec", "seed"])).toHaveLength(1);
});

test("a typo comes before what follows from it in the fields around", () => {
  const around = { line: 12, path: "spec.apps[1]", message: "publisher and subscriber differ" };
  const typo = { line: 13, path: "spec.apps[1].publisher.protocol", message: 'Unsupported value: "mqqt"' };
  const other = { line: 20, path: "spec.apps[10]", message: "has no kind" };
  expect(innerFirst([around, typo, other])).toEqual([typo, around, other]);
});
