// @vitest-environment node
import { expect, test } from "vitest";
import { placeCell, placeText } from "./place";

test("places beyond 10 are rounded up, and say so", () => {
  expect([placeText(3), placeText(30), placeText(0)]).toEqual(["place 3", "at most place 30", "no place in the queue"]);
});

test("places are exact for whoever reads the whole queue", () => {
  expect([placeCell(3, true), placeCell(30, true), placeCell(23, false), placeCell(0, true)]).toEqual(["3", "at most 30", "23", "none"]);
});
