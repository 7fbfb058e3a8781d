// @vitest-environment node
import { expect, test } from "vitest";
import { read } from "./read";

test("an alias without its anchor is a mistake at its line, and the other documents are read", () => {
  const { objects, problem } = read("kind: Experiment\nspec: {seed: 7}\n---\nkind: Campaign\nspec:\n  topics: [*position]\n");
  expect(problem).toEqual({ line: 6, message: "*position has no anchor &position before it." });
  expect(objects.map((o) => o.kind)).toEqual(["Experiment"]);
});

test("aliases that repeat each other without end are a mistake of their document", () => {
  const steps = Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${`*a${n},`.repeat(9)}]`);
  expect(read(`kind: Experiment\n---\na0: &a0 [x]\n${steps.join("\n")}\n`).problem).toEqual({ line: 2, message: "The aliases of this document repeat too much." });
});

test.each(["9007199254740993", "-9007199254740993", "0x20000000000001"])("the seed %s, which would be rounded, is a mistake at its line", (seed) => {
  const { main, problem } = read(`kind: Experiment\nspec:\n  seed: ${seed}\n`);
  expect(problem?.line).toBe(3);
  expect(problem?.message).toContain(`${seed} is too large for a browser.`);
  expect(main?.kind).toBe("Experiment");
});

test("what << merges is read as Kubernetes reads it", () => {
  const { main, problem } = read("kind: Experiment\nspec:\n  a: &common {to: hub, period: 2s}\n  b: {<<: *common, period: 5s}\n");
  expect(problem).toBeUndefined();
  expect(main?.object.spec).toMatchObject({ b: { to: "hub", period: "5s" } });
});

test("a merge of what is no object is a mistake at its line", () => {
  expect(read("kind: Experiment\nspec:\n  a: &one 1\n  b: {<<: *one}\n").problem).toEqual({ line: 4, message: "<< takes an anchor of an object, such as <<: *name." });
});

test.each([
  ["no", "false"],
  ["On", "true"],
  ["y", "true"],
  ["1_000", "1000"],
  ["010", "8"],
  ["0b11", "3"],
  ["-0x1F", "-31"],
])("%s, which Kubernetes reads as %s, is a mistake at its line", (word, value) => {
  expect(read(`kind: Experiment\nspec:\n  a: ${word}\n`).problem).toEqual({ line: 3, message: `Kubernetes reads ${word} as ${value}: write ${value}, or "${word}" with quotes for text.` });
});

test("words and numbers that Kubernetes reads as this page does are no mistake", () => {
  const words = ["true", "nor", "yonder", '"no"', "'010'", "!!str on", "0", "-0", "08", "0.50", "1e3", "0x1F", "0o17", "10_s", "2026-01-02", "1:30", "_1", "~"];
  expect(read(`kind: Experiment\nspec:\n  a: [${words.join(", ")}]\n`).problem).toBeUndefined();
});

test("numbers that are kept as they are written are no mistake", () => {
  const { main, problem } = read('kind: Experiment\nspec: {seed: 9007199254740991, a: 1e30, b: 0.5, c: 90071992547409930.0, d: "9007199254740993"}\n');
  expect(problem).toBeUndefined();
  expect(main?.object.spec).toMatchObject({ seed: 9007199254740991, d: "9007199254740993" });
});
