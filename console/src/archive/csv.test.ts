// @vitest-environment node
import { afterEach, expect, test, vi } from "vitest";
import { CSVReader, piecesOf, readTable, Reservoir, secondsFrom } from "./csv";

afterEach(() => {
  vi.unstubAllGlobals();
});

function rowsOf(...pieces: string[]): string[][] {
  const rows: string[][] = [];
  const reader = new CSVReader((row) => rows.push(row));
  for (const piece of pieces) reader.push(piece);
  reader.end();
  return rows;
}

test("rows are the same however the text is cut into pieces", () => {
  const text = 'a,b\r\n"x, ""y""\nz",2\n,\nlast,"row"';
  const want = [["a", "b"], ['x, "y"\nz', "2"], ["", ""], ["last", "row"]];
  expect(rowsOf(text)).toEqual(want);
  expect(rowsOf(...Array.from(text))).toEqual(want);
});

test("a small file is read whole, and of a large one pieces from its beginning to its end", () => {
  expect(piecesOf(1000)).toEqual([{ offset: 0, bytes: 1000 }]);
  const large = piecesOf(1e9);
  expect(large[0]?.offset).toBe(0);
  expect((large.at(-1)?.offset ?? 0) + (large.at(-1)?.bytes ?? 0)).toBe(1e9);
  expect(large.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(10e6);
});

test("a sample has its size, and the greatest values whatever chance says", () => {
  const reservoir = new Reservoir<{ n: number }>(50, 3, ({ n }) => n);
  for (let n = 0; n < 10_000; n++) reservoir.add({ n });
  const kept = reservoir.rows().map(({ n }) => n);
  expect(reservoir.read).toBe(10_000);
  expect(kept.length).toBeGreaterThanOrEqual(50);
  expect(kept.length).toBeLessThanOrEqual(53);
  expect(kept).toEqual(expect.arrayContaining([9997, 9998, 9999]));
  const mean = kept.slice(0, 50).reduce((a, b) => a + b) / 50;
  expect(mean).toBeGreaterThan(3500);
  expect(mean).toBeLessThan(6500);
});

test("pieces of a table have whole rows only", async () => {
  const file = "id,delay\n" + Array.from({ length: 100 }, (_, i) => `m${i},${i}\n`).join("");
  vi.stubGlobal("fetch", (path: string) => Promise.resolve(new Response(file.slice(Number(new URL(path, "http://x").searchParams.get("offset"))))));
  const read: string[] = [];
  const parts = [
    { offset: 0, bytes: 30 },
    { offset: 300, bytes: 30 },
    { offset: file.length - 20, bytes: 20 },
  ];
  await readTable("/file", parts, (cells) => read.push(`${cells("id")}=${cells("delay")}${cells("none")}`), new AbortController().signal);
  expect(read.slice(0, 3)).toEqual(["m0=0", "m1=1", "m2=2"]);
  expect(read.at(-1)).toBe("m99=99");
  expect(read.every((row) => /^m(\d+)=\1$/.test(row))).toBe(true);
});

test("a moment in nanoseconds is exact to the microsecond", () => {
  const t0 = Date.parse("2026-11-27T07:24:00.818Z");
  expect(secondsFrom(t0, "1795764316239133065")).toBeCloseTo(75.421133, 6);
  expect(secondsFrom(t0, "")).toBeNaN();
});
