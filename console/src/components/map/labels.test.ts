// @vitest-environment node
import { expect, test } from "vitest";
import { placed } from "./labels";

test("a text stands right of its point where there is room", () => {
  expect(placed([{ point: { x: 10, y: 20 }, width: 30, gap: 8 }], 12)).toEqual([{ x: 18, y: 20 }]);
});

test("a text that would cover another stands elsewhere", () => {
  const [first, second] = placed([{ point: { x: 100, y: 20 }, width: 30, gap: 8 }, { point: { x: 102, y: 20 }, width: 30, gap: 8 }], 12);
  expect(first).toEqual({ x: 108, y: 20 });
  expect(second).toEqual({ x: 64, y: 20 });
});

test("no two of many texts overlap, and those without room are left out", () => {
  const wishes = Array.from({ length: 243 }, (_, i) => ({ point: { x: (i * 37) % 300, y: (i * 53) % 200 }, width: 40, gap: 6 }));
  const boxes = placed(wishes, 12).filter((at) => at !== undefined);
  expect(boxes.length).toBeGreaterThan(20);
  expect(boxes.length).toBeLessThan(243);
  for (const a of boxes) {
    for (const b of boxes) {
      if (a !== b) expect(Math.abs(a.x - b.x) >= 40 || Math.abs(a.y - b.y) >= 12).toBe(true);
    }
  }
});

test("no more texts than wanted are placed", () => {
  const wishes = Array.from({ length: 9 }, (_, i) => ({ point: { x: i * 100, y: 0 }, width: 40, gap: 6 }));
  expect(placed(wishes, 12, 3).filter(Boolean)).toHaveLength(3);
});

test("a text covers no obstacle", () => {
  const symbol = { left: 12, top: 10, right: 40, bottom: 30 };
  expect(placed([{ point: { x: 10, y: 20 }, width: 30, gap: 8 }], 12, Infinity, [symbol])).toEqual([{ x: -28, y: 20 }]);
});
