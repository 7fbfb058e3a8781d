// @vitest-environment node
import { PbfWriter } from "pbf";
import { expect, test } from "vitest";
import { drawVectorTile, styleOf } from "./vector";

const of = (type: 0 | 1 | 2 | 3, properties: Record<string, string> = {}) => ({ type, properties });

test("layers are drawn by their names, which differ between makers of maps", () => {
  for (const water of ["water", "ocean", "water_polygons"]) expect(styleOf(water, of(3), "light")?.fill).toBe(styleOf("water", of(3), "light")?.fill);
  for (const road of ["roads", "transportation", "streets"]) expect(styleOf(road, of(2), "light")?.stroke).toBe(styleOf("roads", of(2), "light")?.stroke);
  expect(styleOf("boundaries", of(2), "dark")?.dash?.length).toBe(2);
});

test("a main road is wider than another one", () => {
  expect(styleOf("roads", of(2, { kind: "highway" }), "light")?.width).toBeGreaterThan(styleOf("roads", of(2, { kind: "minor_road" }), "light")?.width ?? Infinity);
  expect(styleOf("roads", of(2, { name: "Old Highway", kind: "minor_road" }), "light")?.width).toBe(styleOf("roads", of(2, { kind: "minor_road" }), "light")?.width);
});

test("points, and layers of other names, are not drawn", () => {
  expect(styleOf("water", of(1), "light")).toBeUndefined();
  expect(styleOf("places", of(3), "light")).toBeUndefined();
});

const zigzag = (n: number) => (n << 1) ^ (n >> 31);

/** tileOf layers that have one square each, of the lower right quarter. */
function tileOf(...names: string[]): ArrayBuffer {
  const square = [9, zigzag(2048), zigzag(2048), 26, zigzag(2048), 0, 0, zigzag(2048), zigzag(-2048), 0, 15];
  const writer = new PbfWriter();
  for (const name of names) {
    writer.writeMessage(3, (layerName: string, layer) => {
      layer.writeVarintField(15, 2);
      layer.writeStringField(1, layerName);
      layer.writeMessage(2, (geometry: number[], feature) => {
        feature.writeVarintField(3, 3);
        feature.writePackedVarint(4, geometry);
      }, square);
      layer.writeVarintField(5, 4096);
    }, name);
  }
  return new Uint8Array(writer.finish()).buffer;
}

test("a vector tile is drawn at its size, water above the green", () => {
  const done: string[] = [];
  const state = { fillStyle: "" };
  const context = {
    beginPath: () => undefined,
    moveTo: (x: number, y: number) => done.push(`from ${x} ${y}`),
    lineTo: (x: number, y: number) => done.push(`to ${x} ${y}`),
    fill: () => done.push(`fill ${state.fillStyle}`),
    set fillStyle(colour: string) { state.fillStyle = colour; },
  } as unknown as CanvasRenderingContext2D;
  drawVectorTile(context, tileOf("water", "landcover"), 512, "light");
  const square = ["from 256 256", "to 512 256", "to 512 512", "to 256 512"];
  expect(done.filter((step) => step.startsWith("fill"))).toEqual([styleOf("landcover", of(3), "light"), styleOf("water", of(3), "light")].map((style) => `fill ${style?.fill ?? ""}`));
  expect(done.slice(0, 4)).toEqual(square);
});
