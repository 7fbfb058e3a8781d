import { VectorTile, type VectorTileFeature } from "@mapbox/vector-tile";
import { PbfReader } from "pbf";
import type { Scheme } from "./sprites";

/** How a feature of a vector tile is drawn. */
export interface FeatureStyle {
  fill?: string;
  stroke?: string;
  width?: number;
  dash?: readonly number[];
}

const colours = {
  light: { water: "#cfe0ec", green: "#dbe8d3", built: "#e2ddd6", way: "#b9b2a8", main: "#958c80", border: "#8a7f96" },
  dark: { water: "#17242f", green: "#212d24", built: "#2b2a28", way: "#4c4a46", main: "#6d6a64", border: "#6c6479" },
} as const;

const kinds = [
  { words: /water|ocean|sea|lake|river|stream/, kind: "water" },
  { words: /boundar|admin|border/, kind: "border" },
  { words: /building/, kind: "built" },
  { words: /road|transport|transit|street|highway|rail/, kind: "way" },
  { words: /land(use|cover)|natural|park|wood|forest|green/, kind: "green" },
] as const;

/** styleOf the features of a layer, by its name: vector maps agree on little else. Undefined for what is not drawn. */
export function styleOf(layer: string, feature: Pick<VectorTileFeature, "type" | "properties">, scheme: Scheme): FeatureStyle | undefined {
  const found = kinds.find(({ words }) => words.test(layer))?.kind;
  const colour = colours[scheme];
  if (!found || feature.type < 2) return undefined;
  if (feature.type === 3) return found === "water" || found === "green" || found === "built" ? { fill: colour[found] } : undefined;
  if (found === "border") return { stroke: colour.border, width: 1.5, dash: [6, 3] };
  if (found === "water") return { stroke: colour.water, width: 1.5 };
  if (found !== "way") return undefined;
  const { kind, kind_detail: detail, class: ofClass } = feature.properties;
  const main = /motorway|trunk|primary|highway|major/.test([kind, detail, ofClass].join(" "));
  return { stroke: main ? colour.main : colour.way, width: main ? 2 : 1 };
}

const order = ["green", "built", "water", "border", "way"];

function rankOf(layer: string): number {
  return order.indexOf(kinds.find(({ words }) => words.test(layer))?.kind ?? "");
}

/** drawVectorTile draws a tile of MVT on a square of pixels. */
export function drawVectorTile(context: CanvasRenderingContext2D, data: ArrayBuffer, size: number, scheme: Scheme): void {
  const { layers } = new VectorTile(new PbfReader(new Uint8Array(data)));
  for (const name of Object.keys(layers).sort((a, b) => rankOf(a) - rankOf(b))) {
    const layer = layers[name];
    for (let i = 0; layer && i < layer.length; i++) drawFeature(context, name, layer.feature(i), size, scheme);
  }
}

function drawFeature(context: CanvasRenderingContext2D, layer: string, feature: VectorTileFeature, size: number, scheme: Scheme): void {
  const style = styleOf(layer, feature, scheme);
  if (!style) return;
  const scale = size / feature.extent;
  context.beginPath();
  for (const line of feature.loadGeometry()) {
    line.forEach(({ x, y }, index) => {
      if (index === 0) context.moveTo(scale * x, scale * y);
      else context.lineTo(scale * x, scale * y);
    });
  }
  if (style.fill) {
    context.fillStyle = style.fill;
    context.fill("evenodd");
  }
  if (style.stroke) {
    context.strokeStyle = style.stroke;
    context.lineWidth = style.width ?? 1;
    context.setLineDash([...(style.dash ?? [])]);
    context.stroke();
  }
}
