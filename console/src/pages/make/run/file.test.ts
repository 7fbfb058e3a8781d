// @vitest-environment node
import { expect, test } from "vitest";
import { read } from "../text/read";
import { fileNameOf, fileOf } from "./file";

const mark = { namespace: "team", name: "old", uid: "u1", annotations: { "vignette.dev/rerun": '{"uid":"u1","name":"it\'s: {old}"}' } };
const before = `# what it is for
kind: Experiment
metadata:
  name: old
spec: {seed: 1}
`;

function metadataOf(text: string, of = before) {
  return read(fileOf(text, { mark, text: of })).main?.object.metadata;
}

test("the file of a clone says which run it repeats, as the experiment does that the page creates", () => {
  expect(metadataOf(before)).toEqual({ name: "old", labels: { "vignette.dev/rerun-of": "u1" }, annotations: mark.annotations });
});

test("a clone whose spec was changed is based on the run, and keeps labels and comments of its own", () => {
  const changed = before.replace("seed: 1", "seed: 2").replace("  name: old", "  name: old\n  labels: {mine: here}");
  expect(metadataOf(changed)).toEqual({ name: "old", labels: { mine: "here", "vignette.dev/based-on": "u1" }, annotations: mark.annotations });
  expect(fileOf(changed, { mark, text: before })).toContain("# what it is for\n");
});

test("objects beside the experiment get no mark, and neither does a campaign", () => {
  const scenario = "---\nkind: Scenario\nmetadata: {name: hills}\n";
  expect(read(fileOf(before + scenario, { mark, text: before })).objects[1]?.object.metadata).toEqual({ name: "hills" });
  const campaign = "kind: Campaign\nmetadata: {name: c}\n";
  expect(fileOf(campaign, { mark, text: before })).toBe(campaign);
});

test("a text that repeats no run is its own file", () => {
  expect(fileOf(before, { text: before })).toBe(before);
});

test("a file has the name of its object", () => {
  expect([fileNameOf("try"), fileNameOf(""), fileNameOf(undefined)]).toEqual(["try.yaml", "experiment.yaml", "experiment.yaml"]);
});
