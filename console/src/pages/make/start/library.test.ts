// @vitest-environment node
import { expect, test } from "vitest";
import { studiesOf, titleText, type LibraryEntry } from "./library";

function entry(path: string, kind = "Experiment", title = ""): LibraryEntry {
  return { path, kind, title, name: "", study: path.split("/")[0] ?? "" };
}

const entries = [entry("e10/a.yaml"), entry("e4/b.yaml"), entry("e4/campaigns/all.yaml", "Campaign", "Ways of messaging"), entry("quickstart/experiment.yaml"), entry("anglova/scenario.yaml", "Scenario")];

test("the library is grouped by study: the quickstart first, e4 before e10, campaigns before experiments", () => {
  expect(studiesOf(entries, "").map((s) => [s.name, ...s.entries.map((e) => e.path)])).toEqual([
    ["quickstart", "quickstart/experiment.yaml"],
    ["e4", "e4/campaigns/all.yaml", "e4/b.yaml"],
    ["e10", "e10/a.yaml"],
  ]);
});

test("a search finds entries in which all its words occur", () => {
  expect(studiesOf(entries, "E4  messaging").flatMap((s) => s.entries.map((e) => e.path))).toEqual(["e4/campaigns/all.yaml"]);
  expect(studiesOf(entries, "e4 satcom")).toEqual([]);
});

test("a title that ends within a sentence says so", () => {
  expect(titleText(entry("a", "Experiment", "Each company has a network and a broker,"))).toBe("Each company has a network and a broker…");
  expect(titleText(entry("a", "Experiment", "What does TLS cost?"))).toBe("What does TLS cost?");
});
