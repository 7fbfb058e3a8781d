// @vitest-environment node
import { expect, test } from "vitest";
import { drawMoving, type Frame } from "./moving";
import { emptyScene } from "./scene";

/** drawnLinks are the lines of three links between a, b and c, and how opaque each is. */
function drawnLinks(selected: string | undefined) {
  const lines: { line: string; alpha: number }[] = [];
  let path: string[] = [];
  const context = {
    globalAlpha: 1,
    beginPath: () => { path = []; },
    moveTo: (x: number) => { path.push(String(x)); },
    lineTo: (x: number) => { path.push(`${path.pop() ?? ""}-${x}`); },
    stroke: () => { lines.push(...path.map((line) => ({ line, alpha: context.globalAlpha }))); },
    clearRect: () => undefined,
    setLineDash: () => undefined,
    arc: () => undefined,
    drawImage: () => undefined,
  };
  const sprite = { image: undefined, anchor: { x: 0, y: 0 }, width: 1, height: 1 };
  const names = ["a", "b", "c"];
  const link = (from: string, to: string) => ({ from, to, linkClass: 4, forward: 25, backward: 25 });
  const frame = {
    scene: { ...emptyScene, nodes: names.map((name) => ({ name, symbol: "", track: [] })), selected },
    view: { width: 100, height: 100 },
    scheme: "light",
    sprites: { node: () => sprite, label: () => sprite },
    links: [link("a", "b"), link("b", "c"), link("a", "c")],
    pixels: names.map((_, i) => ({ x: 10 * (i + 1), y: 10 })),
    reported: [],
    indexOf: new Map(names.map((name, i) => [name, i])),
    jammers: [],
    handles: [],
  } as unknown as Frame;
  drawMoving(context as unknown as CanvasRenderingContext2D, frame);
  expect(context.globalAlpha).toBe(1);
  return lines;
}

test("without a selected node all links are drawn alike", () => {
  expect(drawnLinks(undefined)).toEqual(["10-20", "20-30", "10-30"].map((line) => ({ line, alpha: 1 })));
});

test("the links of the selected node lie above those of others, which are faded", () => {
  const [first, ...own] = drawnLinks("a");
  expect(first?.line).toBe("20-30");
  expect(first?.alpha).toBeLessThan(0.3);
  expect(own).toEqual(["10-20", "10-30"].map((line) => ({ line, alpha: 1 })));
});
