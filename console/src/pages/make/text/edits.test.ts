import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { changeBetween, edited, flowText, type Edit } from "./edits";
import { at, equal, withValue, type Path } from "./values";

const text = `# Two nations.
apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata:
  name: quickstart
spec:
  duration: 75s   # one minute and the rest
  seed: 7
  networks:
  - {name: wan, waveform: baseline, subnet: 198.18.0.0/24}
  apps:
  - {name: hub, mosquitto: {}}                    # Norway's
  - name: bft                                     # the units
    instances: 4
    publisher: {protocol: mqtt, to: hub, period: 2s}
  nodes:
  - {name: nor, networks: [wan], apps: [hub, bft]}
  - {name: prt, networks: [wan], apps: [bft]}     # the second
  # the last words
`;

/** lines that an edit removes and adds. */
function changes(before: string, after: string): { less: string[]; more: string[] } {
  const was = before.split("\n");
  const is = after.split("\n");
  return { less: was.filter((line) => !is.includes(line)), more: is.filter((line) => !was.includes(line)) };
}

function set(path: Path, value?: unknown): Edit {
  return { document: 0, path, value };
}

test.each([
  ["a value", set(["spec", "seed"], 9), { less: ["  seed: 7"], more: ["  seed: 9"] }],
  ["a value before a comment", set(["spec", "duration"], "5m"), { less: ["  duration: 75s   # one minute and the rest"], more: ["  duration: 5m   # one minute and the rest"] }],
  [
    "a value in braces",
    set(["spec", "networks", 0, "waveform"], "satcom"),
    { less: ["  - {name: wan, waveform: baseline, subnet: 198.18.0.0/24}"], more: ["  - {name: wan, waveform: satcom, subnet: 198.18.0.0/24}"] },
  ],
  [
    "a new field in braces",
    set(["spec", "nodes", 1, "count"], 3),
    { less: ["  - {name: prt, networks: [wan], apps: [bft]}     # the second"], more: ["  - {name: prt, networks: [wan], apps: [bft], count: 3}     # the second"] },
  ],
  [
    "a field less in braces",
    set(["spec", "networks", 0, "waveform"]),
    { less: ["  - {name: wan, waveform: baseline, subnet: 198.18.0.0/24}"], more: ["  - {name: wan, subnet: 198.18.0.0/24}"] },
  ],
  ["a new field with its parents", set(["spec", "drain", "max"], "30s"), { less: [], more: ["  drain: {max: 30s}"] }],
  ["a field less", set(["spec", "seed"]), { less: ["  seed: 7"], more: [] }],
  ["a new element", set(["spec", "nodes", 2], { name: "usa", networks: ["wan"] }), { less: [], more: ["  - {name: usa, networks: [wan]}"] }],
  ["an element less", set(["spec", "apps", 0]), { less: ["  - {name: hub, mosquitto: {}}                    # Norway's"], more: [] }],
  [
    "a name of a field",
    { document: 0, path: ["spec", "apps", 0, "mosquitto"], rename: "vernemq" },
    { less: ["  - {name: hub, mosquitto: {}}                    # Norway's"], more: ["  - {name: hub, vernemq: {}}                    # Norway's"] },
  ],
  ["an element of several lines", set(["spec", "apps", 1, "instances"], 8), { less: ["    instances: 4"], more: ["    instances: 8"] }],
] as const)("an edit of %s changes its line and no other", (_, edit, wanted) => {
  expect(changes(text, edited(text, [edit]))).toEqual(wanted);
});

test("a field that has a name like a truth value gets quotes, as Go reads YAML 1.1", () => {
  expect(["off", "yes", "12", "a, b", "10s", true, 12, { a: ["#"] }].map(flowText)).toEqual(['"off"', '"yes"', '"12"', '"a, b"', "10s", "true", "12", '{a: ["#"]}']);
});

test("an edit of a text that cannot be read changes nothing", () => {
  expect(edited("spec: {a: [}", [set(["spec", "a"], 1)])).toBe("spec: {a: [}");
});

test("an edit that takes an alias its anchor is made, and the text says what it lacks", () => {
  const after = edited("spec:\n  a: &one 5\n  b: *one\n", [set(["spec", "a"])]);
  expect(after).toBe("spec:\n  b: *one\n");
  expect(edited(after, [set(["spec", "c"], 1)])).toBe(after);
});

const merged = "spec:\n  a: &common {to: hub, link: {rate: 1kbit, loss: 1%}}   # for all\n  b: {<<: *common}\n  c: *common\n";

test.each([
  ["another value", set(["spec", "b", "to"], "mast"), "  b: {<<: *common, to: mast}"],
  ["another value inside", set(["spec", "b", "link", "rate"], "2kbit"), "  b: {<<: *common, link: {rate: 2kbit, loss: 1%}}"],
  ["nothing", set(["spec", "b", "to"]), "  b: {link: {rate: 1kbit, loss: 1%}}"],
  ["another value through an alias", set(["spec", "c", "to"], "mast"), "  c: {to: mast, link: {rate: 1kbit, loss: 1%}}"],
])("a field that comes from an anchor gets %s, and the anchor stays", (_, edit, line) => {
  const after = edited(merged, [edit]);
  expect(changes(merged, after).more).toEqual([line]);
  expect(after).toContain("# for all");
});

test("no edit rounds a number, also where it needs a new layout", () => {
  const large = "spec:\n  seed: 9007199254740993\n  apps:\n  - {name: a}   # one\n";
  expect(edited(large, [set(["spec", "apps"], [])])).toContain("seed: 9007199254740993\n");
});

test("the second of two documents is edited, and the first stays", () => {
  const two = `${text}---\nkind: Waveform\nspec: {link: {rate: 1kbit}}\n`;
  expect(edited(two, [{ document: 1, path: ["spec", "link", "rate"], value: "2kbit" }])).toBe(two.replace("1kbit", "2kbit"));
});

test("an edit that needs a new layout keeps every comment", () => {
  const after = edited(text, [set(["spec", "apps"], [])]);
  for (const comment of ["# Two nations.", "# one minute and the rest", "# the second", "# the last words"]) expect(after).toContain(comment);
});

test("the change between two texts is the shortest", () => {
  expect(changeBetween("seed: 7\n", "seed: 79\n")).toEqual({ from: 7, to: 7, insert: "9" });
  expect(changeBetween("aa", "a")).toEqual({ from: 1, to: 2, insert: "" });
  expect(changeBetween("a", "a")).toBeUndefined();
});

const library = join(import.meta.dirname, "../../../../../scenarios");
// One of each way of writing that the library has.
const files = ["quickstart/experiment.yaml", "e2/mosquitto-qos0-anglova.yaml", "e4/campaigns/setting1.yaml", "e6/short", "own-app/experiment.yaml"];

function scenario(name: string): string {
  const path = join(library, name);
  return readFileSync(name.endsWith(".yaml") ? path : join(path, readdirSync(path).filter((file) => file.endsWith(".yaml")).sort()[0] ?? ""), "utf8");
}

test.each(files)("an edit of any field of %s means what it says, and keeps every comment", { timeout: 60_000 }, (name) => {
  const before = scenario(name);
  for (const [document, parsed] of parseAllDocuments(before).entries()) {
    const value = parsed.toJS() as unknown;
    for (const edit of samples(value, document)) {
      const after = edited(before, [edit]);
      const what = JSON.stringify(edit);
      expect(equal(parseAllDocuments(after)[document]?.toJS(), withValue(value, edit.path, edit.value)), what).toBe(true);
      if (edit.value !== undefined) expect(comments(after), what).toEqual(comments(before));
    }
  }
});

function comments(of: string): string[] {
  return of.split("\n").flatMap((line) => /(?:^|\s)(#\s.*)$/.exec(line)?.[1] ?? []);
}

/** samples are edits of some fields of a document: another value, one less and one more. */
function samples(value: unknown, document: number): Edit[] {
  const paths: Path[] = [["spec", "duration"], ["spec", "seed"], ["metadata", "name"], ["spec", "networks", 0, "mtu"], ["spec", "apps", 0, "name"], ["spec", "nodes", 0, "count"], ["spec", "template", "spec", "seed"]];
  const less: Path[] = [["spec", "nodes", 0], ["spec", "timeline", 0], ["spec", "seed"]];
  return [...paths.map((path) => ({ document, path, value: 5 })), ...less.map((path) => ({ document, path }))].filter(({ path }) => at(value, path.slice(0, -1)) !== undefined);
}

test("a text of several lines keeps its lines, and the document its layout", () => {
  const lines = "spec:\n    files:\n    - path: /opt/a   # ours\n      content: |\n          one\n\n          two\n    # the rest\n    seed:   7\n";
  const content = (value: string) => edited(lines, [set(["spec", "files", 0, "content"], value)]);
  expect(content("one\n\n  twice\n")).toBe(lines.replace("          two\n", "            twice\n"));
  expect(content("one")).toBe(lines.replace("|\n          one\n\n          two\n", "|-\n          one\n"));
  for (const value of ["", "\n", "  one", "one\n\n", " \n one"]) expect(parseAllDocuments(content(value))[0]?.getIn(["spec", "files", 0, "content"])).toBe(value);
});

test("a new text of several lines has lines, and stays on one line within braces", () => {
  const script = "0.0 LISTEN UDP 5000\n1.0 ON 1 UDP DST hq/5000 PERIODIC [1 200]\n";
  const app = { name: "flows", mgen: { script } };
  const lines = ["  - name: flows", "    mgen:", "      script: |", "        0.0 LISTEN UDP 5000", "        1.0 ON 1 UDP DST hq/5000 PERIODIC [1 200]"];
  expect(changes(text, edited(text, [set(["spec", "apps", 2], app)]))).toEqual({ less: [], more: lines });
  expect(changes(text, edited(text, [set(["spec", "apps", 1, "mgen"], app.mgen)])).more).toEqual(lines.slice(1));
  const braces = edited(text, [set(["spec", "apps", 0, "mgen"], app.mgen)]);
  expect(changes(text, braces).more).toEqual([`  - {name: hub, mosquitto: {}, mgen: {script: ${JSON.stringify(script)}}}                    # Norway's`]);
});
