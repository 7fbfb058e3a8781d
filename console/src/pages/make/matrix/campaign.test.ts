import { expect, test } from "vitest";
import { edited } from "../text/edits";
import { read } from "../text/read";
import { empty } from "../start/empty";
import { asCampaign, axesOf, MatrixEditing, textOf, valueOf } from "./campaign";

function campaignOf(text: string) {
  const main = read(text).main;
  if (!main) throw new Error("the text has no campaign");
  return main;
}

function campaignText(text: string): string {
  const made = asCampaign(text);
  if (made === undefined) throw new Error("no campaign was made of the text");
  return made;
}

test("a campaign of an experiment has its spec as the template, with every comment", () => {
  const before = campaignOf(empty);
  const text = campaignText(empty);
  const after = campaignOf(text);
  expect(after.kind).toBe("Campaign");
  expect(after.object.spec).toMatchObject({ repeats: 1, matrix: { axes: [] }, template: { spec: before.object.spec } });
  expect(text).toContain("# 3 s to connect, then the first messages");
});

test("a campaign of the second of three documents leaves what stands around it", () => {
  const scenario = "# first\nkind: Scenario\nmetadata: {name: s}\nspec:\n  description: moves\n---\n";
  const waveform = "---\nkind: Waveform\nmetadata: {name: w}\nspec:\n  tdma: {}\n";
  const text = campaignText(`${scenario}${empty}${waveform}`);
  expect(text.startsWith(scenario)).toBe(true);
  expect(text.endsWith(waveform)).toBe(true);
  expect(read(text).objects.map((o) => `${o.kind}/${o.name}`)).toEqual(["Scenario/s", "Campaign/my-experiment", "Waveform/w"]);
  expect(campaignOf(text).object.spec).toMatchObject({ template: { spec: campaignOf(empty).object.spec } });
});

test("the kind may stand after the spec", () => {
  expect(campaignOf(campaignText("metadata: {name: e}\nspec:\n  seed: 5\nkind: Experiment\n")).object).toMatchObject({ kind: "Campaign", spec: { template: { spec: { seed: 5 } } } });
});

test("no campaign is made of a text without an experiment, or with a spec on one line", () => {
  for (const text of ["kind: Waveform\nspec:\n  tdma: {}\n", "kind: Experiment\nspec: {seed: 5}\n", '{"kind": "Experiment", "spec": {"seed": 5}}']) expect(asCampaign(text)).toBeUndefined();
});

test("axes are added, filled and removed", () => {
  let text = campaignText(empty);
  const apply = (make: (m: MatrixEditing) => ReturnType<MatrixEditing["addAxis"]>) => {
    text = edited(text, make(new MatrixEditing(campaignOf(text))));
  };
  apply((m) => m.addAxis());
  apply((m) => m.name(0, "link"));
  apply((m) => m.path(0, "networks[wan].link.rate"));
  apply((m) => m.values(0, ["9.6kbit", "1Mbit"]));
  expect(axesOf(campaignOf(text))).toEqual([{ name: "link", path: "networks[wan].link.rate", values: ["9.6kbit", "1Mbit"], levels: [] }]);
  apply((m) => m.asLevels(0));
  expect(axesOf(campaignOf(text))[0]?.levels[1]).toEqual({ name: "1Mbit", set: [{ path: "networks[wan].link.rate", value: "1Mbit" }] });
  apply((m) => m.addSetting(0, 1));
  apply((m) => m.setting(0, 1, 1, "path", "seed"));
  apply((m) => m.setting(0, 1, 1, "value", "5"));
  expect(axesOf(campaignOf(text))[0]?.levels[1]?.set[1]).toEqual({ path: "seed", value: 5 });
  apply((m) => m.removeAxis(0));
  expect(axesOf(campaignOf(text))).toEqual([]);
});

test("values are read as YAML reads them, and written so that they are read alike", () => {
  for (const value of [5, "5", "5s", true, "true", { vernemq: {} }, ["a"], null, "9007199254740993"]) expect(valueOf(textOf(value))).toEqual(value);
});
