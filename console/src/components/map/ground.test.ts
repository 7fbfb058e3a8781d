// @vitest-environment node
import { expect, test } from "vitest";
import { drawGround } from "./ground";
import { projectionAbout } from "./projection";

/** written are the words on the ground of a map about a place. */
function written(longitude: number): string[] {
  const words: string[] = [];
  const context = new Proxy({} as CanvasRenderingContext2D, { get: (_, name) => (name === "fillText" ? (text: string) => words.push(text) : () => undefined) });
  const view = { centre: { x: 0, y: 0 }, metresPerPixel: 200, width: 800, height: 500 };
  drawGround(context, view, { projection: projectionAbout({ latitude: 0, longitude }), terrain: undefined, ways: [], selected: undefined, background: undefined, withoutPlaces: false }, "light");
  return words;
}

test("a map across the date line has meridians on both of its sides", () => {
  expect(written(180).filter((word) => / [EW]$/.test(word))).toEqual(["179.5° E", "180.0° W", "179.5° W"]);
});

test("a map elsewhere has its meridians from west to east", () => {
  expect(written(8).filter((word) => / [EW]$/.test(word))).toEqual(["7.5° E", "8.0° E", "8.5° E"]);
});
