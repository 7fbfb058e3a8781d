// @vitest-environment node
import { expect, test } from "vitest";
import { classOf } from "./scale";
import { drawn, hasRoomForSymbols, hopsFrom, paired } from "./scene";

const sinr = (value: number | null) => classOf("sinr", value);

test("a link shows the worse of its directions", () => {
  const links = paired([{ from: "b", to: "a", value: 25 }, { from: "a", to: "b", value: 3 }], sinr);
  expect(links).toEqual([{ from: "a", to: "b", linkClass: 1, forward: 3, backward: 25 }]);
});

test("the worse direction is not known where one direction is not", () => {
  expect(paired([{ from: "b", to: "a", value: 25 }], sinr)[0]).toMatchObject({ linkClass: -1, forward: null, backward: 25 });
  expect(paired([{ from: "b", to: "a", value: null }], sinr)[0]?.linkClass).toBe(-1);
});

test("of too many links those of the selected node stay, and the best", () => {
  const links = Array.from({ length: 10 }, (_, i) => ({ from: `n${i}`, to: "z", linkClass: i % 5, forward: 0, backward: 0 }));
  const some = drawn(links, "n0", 3);
  expect(some.map((l) => l.from)).toEqual(["n0", "n4", "n9"]);
  expect(drawn(links, undefined, 10)).toBe(links);
});

test("hops are those of the shortest way, in the direction of the links", () => {
  const links = [{ from: "a", to: "b" }, { from: "b", to: "c" }, { from: "a", to: "d" }, { from: "d", to: "c" }, { from: "e", to: "a" }];
  expect([...hopsFrom(links, "a")].sort()).toEqual([["a", 0], ["b", 1], ["c", 2], ["d", 1]]);
});

test("many nodes, or near ones, are dots", () => {
  const row = (count: number, step: number) => Array.from({ length: count }, (_, i) => ({ x: (i * step) % 1000, y: Math.floor((i * step) / 1000) * 40 }));
  expect(hasRoomForSymbols(row(24, 40), 1000, 600)).toBe(true);
  expect(hasRoomForSymbols(row(24, 5), 1000, 600)).toBe(false);
  expect(hasRoomForSymbols(row(243, 40), 1000, 600)).toBe(false);
});
