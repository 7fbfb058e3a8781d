// @vitest-environment node
import { expect, test } from "vitest";
import { listOf, writeSearch } from "./address";
import { sortFrom, sortRows, writeSort } from "./sorting";

test("a list is one parameter for each of its texts", () => {
  expect(writeSearch({ run: ["e5/a", "e5/b"], by: "way" })).toBe("?by=way&run=e5/a&run=e5/b");
  expect(writeSearch({ run: undefined })).toBe("");
});

test("a parameter is read however often it comes", () => {
  expect([listOf(undefined), listOf("a"), listOf(["a", "b"]), listOf(7), listOf("")]).toEqual([[], ["a"], ["a", "b"], ["7"], []]);
});

test("rows are sorted by number or text, and those without a value come last", () => {
  const columns = [
    { id: "n", value: (row: { n?: number; name: string }) => row.n },
    { id: "name", value: (row: { n?: number; name: string }) => row.name },
  ];
  const rows = [{ name: "n10", n: 2 }, { name: "n9" }, { name: "n1", n: 10 }];
  const order = (text: string) => sortRows(rows, columns, sortFrom(text)).map(({ name }) => name);
  expect(order("n")).toEqual(["n10", "n1", "n9"]);
  expect(order("-n")).toEqual(["n1", "n10", "n9"]);
  expect(order("name")).toEqual(["n1", "n9", "n10"]);
  expect(order("other")).toEqual(["n10", "n9", "n1"]);
  expect(writeSort(sortFrom("-n"))).toBe("-n");
});
