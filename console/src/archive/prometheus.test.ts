// @vitest-environment node
import { expect, test } from "vitest";
import { parseMetrics } from "./prometheus";

test("a line has a name, labels and a value", () => {
  expect(parseMetrics('# HELP a about\n# TYPE a gauge\na{node="hq",app="bft"} 1.5e+03 1700000000\nb 2\n')).toEqual([
    { name: "a", labels: { node: "hq", app: "bft" }, value: 1500 },
    { name: "b", labels: {}, value: 2 },
  ]);
});

test("labels may have quotes, backslashes, line ends, commas and braces", () => {
  expect(parseMetrics('a{x="\\"q\\" \\\\ \\n ,}{="} 1')[0]?.labels).toEqual({ x: '"q" \\ \n ,}{=' });
});

test("values that are no usual numbers are read", () => {
  expect(parseMetrics("a NaN\nb +Inf\nc -Inf").map((s) => s.value)).toEqual([NaN, Infinity, -Infinity]);
});

test("what is no series is left out", () => {
  expect(parseMetrics('{} 1\na\na{x="1" 2\na{x=1} 2\na b\n\n=\n')).toEqual([]);
});

test("broken text of any kind ends the reading of its line only", () => {
  const good = 'a{node="hq"} 1';
  for (let cut = 0; cut < good.length; cut++) expect(parseMetrics(`${good.slice(0, cut)}\nb 2`).at(-1)).toEqual({ name: "b", labels: {}, value: 2 });
});

test("lines that are not wanted are not read", () => {
  expect(parseMetrics("a 1\nb 2", (line) => line.startsWith("b"))).toEqual([{ name: "b", labels: {}, value: 2 }]);
});
