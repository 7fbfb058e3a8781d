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

test("a campaign of an experiment has its spec as the template, with every comment", () => {
  const before = campaignOf(empty);
  const text = asCampaign(empty);
  const after = campaignOf(text);
  expect(after.kind).toBe("Campaign");
  expect(after.object.spec).toMatchObject({ repeats: 1, matrix: { axes: [] }, template: { spec: before.object.spec } });
  expect(text).toContain("# 3 s to connect, then the first messages");
});

test("a campaign of the second of two documents leaves what stands around it", () => {
  const text = `# first\nkind: Scenario\nmetadata: {name: s}\n---\n${empty}---\nkind: Waveform\nmetadata: {name: w}\n`;
  const { objects } = read(asCampaign(text));
  expect(objects.map((o) => `${o.kind}/${o.name}`)).toEqual(["Scenario/s", "Campaign/my-experiment", "Waveform/w"]);
});

test("axes are added, filled and removed", () => {
  let text = asCampaign(empty);
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
  for (const value of [5, "5", "5s", true, "true", { vernemq: {} }, ["a"], null]) expect(valueOf(textOf(value))).toEqual(value);
});
