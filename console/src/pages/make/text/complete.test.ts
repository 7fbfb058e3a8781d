// @vitest-environment node
import { expect, test } from "vitest";
import { choicesIn, explain, pathsOf } from "./complete";
import { read } from "./read";
import { loadSchemas } from "./schema";

const schemas = await loadSchemas();
const names = { waveforms: ["baseline", "satcom"], scenarios: [] };

const head = "apiVersion: vignette.dev/v1alpha1\nkind: Experiment\nmetadata:\n  name: try\nspec:\n";
const rest = `
  networks:
  - {name: wan, waveform: baseline}
  apps:
  - {name: hub, mosquitto: {}}
`;

/** at offers what may stand where | is. */
function at(marked: string): string[] | undefined {
  const offset = marked.indexOf("|");
  return choicesIn(marked.slice(0, offset) + marked.slice(offset + 1), offset, schemas, names)?.choices.map((c) => c.apply ?? c.label);
}

test("a field of the spec is offered with its colon, and one that is there is not", () => {
  const offered = at(`${head}  dur|${rest}`);
  expect(offered).toContain("duration: ");
  expect(offered).not.toContain("networks: ");
});

test("fields are offered within braces and within elements of a list", () => {
  expect(at(`${head}  networks:\n  - {name: wan, wa|}\n`)).toContain("waveform: ");
  expect(at(`${head}  nodes:\n  - name: hq\n    co|\n`)).toContain("count: ");
});

test("values are the words of the schema", () => {
  expect(at(`${head}  apps:\n  - {name: bft, publisher: {protocol: mq|}}\n`)).toEqual(expect.arrayContaining(["mqtt", "mqtt-sn"]));
});

test("values that refer to something are the names of what there is", () => {
  expect(at(`${head}  networks:\n  - {name: wan, waveform: s|}\n`)).toEqual(["baseline", "satcom"]);
  expect(at(`${head}${rest.slice(1)}  nodes:\n  - {name: hq, apps: [h|]}\n`)).toEqual(["hub"]);
});

test("nothing is offered in a comment", () => {
  expect(at(`${head}  seed: 7 # dur|\n`)).toBeUndefined();
});

test("the template of a campaign has the fields of an experiment", () => {
  expect(at("kind: Campaign\nspec:\n  template:\n    spec:\n      see|\n")).toContain("seed: ");
});

test("a field is explained by its schema", () => {
  const text = `${head}  duration: 75s\n`;
  const explained = explain(text, text.indexOf("duration") + 2, schemas);
  expect(explained?.name).toBe("duration");
  expect(explained?.schema.description).toMatch(/^duration/);
  expect(explain(text, 0, {})).toBeUndefined();
});

test("a campaign may vary the fields that its experiment has, by their names", () => {
  const main = read(`${head}${rest.slice(1)}`).main;
  const paths = main ? pathsOf(main, schemas).map((p) => p.label) : [];
  expect(paths).toEqual(expect.arrayContaining(["duration", "networks[wan].waveform", "apps[hub].instances"]));
});
