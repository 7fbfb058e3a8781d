import type { NetworkResult } from "../../archive/types";
import { bytesPerSecond } from "../../components/figures";
import { leftMargin, shortened } from "../../components/plots/boxes";
import type { PlotLibrary, TextRow } from "../../components/plots/PlotFigure";
import type { Column } from "../../components/VirtualTable";
import { palette } from "../../theme/palette";

/** layers of traffic, from the frame inwards; the frames of routing protocols are in routing alone. */
export const layers = ["ethernet", "ip", "transport", "application", "routing"] as const;
const colours = [palette.grey, palette.sky, palette.orange, palette.green, palette.purple];

export const layerLegend = layers.map((label, i) => ({ label, colour: colours[i] ?? palette.grey }));

export interface LayerVolume {
  network: string;
  layer: string;
  bytesPerSecond: number;
}

/** layerVolumes of the networks whose captures say so. */
export function layerVolumes(networks: readonly NetworkResult[]): LayerVolume[] {
  return networks.flatMap(({ name, byLayer }) => (byLayer ? layers.map((layer) => ({ network: name, layer, bytesPerSecond: byLayer[layer] ?? 0 })) : []));
}

export function drawLayers(plot: PlotLibrary, volumes: LayerVolume[], width: number): Element {
  const names = [...new Set(volumes.map(({ network }) => network))];
  const margin = leftMargin(names, width);
  return plot.plot({
    width,
    height: 60 + 36 * names.length,
    marginLeft: margin,
    x: { label: "bytes per second", grid: true, tickFormat: (value: number) => bytesPerSecond(value), ...(width < 500 && { ticks: 3 }) },
    y: { label: null, domain: names, tickFormat: (name: string) => shortened(name, margin) },
    color: { domain: [...layers], range: colours },
    marks: [
      plot.barX(volumes, plot.stackX({ y: "network", x: "bytesPerSecond", fill: "layer", order: [...layers], stroke: "currentColor", strokeWidth: 0.5, insetTop: 3, insetBottom: 3, title: ({ network, layer, bytesPerSecond: rate }: LayerVolume) => `${network}, ${layer}: ${bytesPerSecond(rate)}` })),
      plot.ruleX([0]),
    ],
  });
}

export const layerColumns: Column<TextRow>[] = [
  { id: "network", head: "Network", value: ({ network }) => network },
  { id: "layer", head: "Layer", value: ({ layer }) => layer },
  { id: "bytesPerSecond", head: "Volume", numeric: true, value: (row) => row.bytesPerSecond, show: (row) => bytesPerSecond(row.bytesPerSecond as number) },
];
