// @vitest-environment node
import { expect, test } from "vitest";
import { about, linesBetween } from "./diff";

function written(before: string, after: string): string[] {
  return linesBetween(before, after).map((line) => line.sign + line.text);
}

test("lines that changed stand between those that did not", () => {
  expect(written("a\nb\nc\nd", "a\nx\nc\ny\nd")).toEqual([" a", "-b", "+x", " c", "+y", " d"]);
});

test("equal texts have no difference", () => {
  expect(written("a\nb", "a\nb")).toEqual([" a", " b"]);
});

test("a text of many other lines is all removed and all added", () => {
  const lines = (word: string) => Array.from({ length: 2100 }, (_, i) => word + String(i)).join("\n");
  const found = written(lines("a"), lines("b"));
  expect([found.length, found[0], found[2100]]).toEqual([4200, "-a0", "+b0"]);
});

test("only what is near a change is shown, with one mark for what is left out", () => {
  const lines = linesBetween("1\n2\n3\n4\n5\n6\n7", "1\n2\n3\nx\n5\n6\n7");
  expect(about(lines, 1).map((line) => (line ? line.sign + line.text : "…"))).toEqual(["…", " 3", "-4", "+x", " 5", "…"]);
});
