import { Stack, Text } from "@mantine/core";
import { useCallback, useMemo } from "react";
import type { NetworkResult } from "../../archive/types";
import { bytesPerSecond, count } from "../../components/figures";
import { PlotFigure, type PlotLibrary, type TextRow } from "../../components/plots/PlotFigure";
import { TableSection } from "../../components/TableSection";
import { afterT0 } from "../../components/time";
import type { Column } from "../../components/VirtualTable";
import { drawLayers, layerColumns, layerLegend, layerVolumes } from "./layers";
import type { PartProps } from "./part";
import { droppedWords, framesDropped } from "./words";

/** Volume shows what networks carried. */
export function Volume({ results, state }: PartProps) {
  const networks = results.networks ?? [];
  const volumes = useMemo(() => layerVolumes(results.networks ?? []), [results]);
  const rows = useMemo(() => volumes.map((volume): TextRow => ({ ...volume })), [volumes]);
  const draw = useCallback((plot: PlotLibrary, width: number) => drawLayers(plot, volumes, width), [volumes]);
  return (
    <Stack>
      {volumes.length > 0 ? (
        <PlotFigure title="Data volume by layer" file={`${state.plan.name}-volume-by-layer`} draw={draw} columns={layerColumns} rows={rows} legend={layerLegend}>
          Ethernet bytes that nodes sent, each once, from the first start of a publisher to the end of the drain.
        </PlotFigure>
      ) : (
        <Text>Layers are known only where captures cover a network in full.</Text>
      )}
      <TableSection title="Networks" columns={networkColumns} rows={networks} keyOf={({ name }) => name} empty="The results name no networks." />
    </Stack>
  );
}

const networkColumns: Column<NetworkResult>[] = [
  { id: "name", head: "Network", value: ({ name }) => name },
  { id: "volume", head: "Volume", numeric: true, value: (row) => row.bytesPerSecond, show: (row) => bytesPerSecond(row.bytesPerSecond) },
  { id: "routing", head: "Of it routing", numeric: true, value: (row) => row.routingBytesPerSecond, show: (row) => bytesPerSecond(row.routingBytesPerSecond) },
  { id: "sent", head: "Frames sent", numeric: true, value: ({ frames }) => frames?.sent, show: ({ frames }) => count(frames?.sent) },
  { id: "received", head: "Received", numeric: true, value: ({ frames }) => frames?.received, show: ({ frames }) => count(frames?.received) },
  { id: "dropped", head: "Dropped", numeric: true, value: ({ frames }) => framesDropped(frames), show: ({ frames }) => droppedWords(frames) },
  { id: "retransmissions", head: "TCP retransmissions", numeric: true, value: ({ tcp }) => tcp?.retransmissions, show: ({ tcp }) => count(tcp?.retransmissions) },
  { id: "spurious", head: "Spurious", numeric: true, value: ({ tcp }) => tcp?.spurious, show: ({ tcp }) => count(tcp?.spurious) },
  { id: "acks", head: "Duplicate ACKs", numeric: true, value: ({ tcp }) => tcp?.duplicateAcks, show: ({ tcp }) => count(tcp?.duplicateAcks) },
  {
    id: "captured",
    head: "Captured",
    value: ({ captured }) => (captured ? `${captured.nodes?.length ?? 0} nodes, ${afterT0(captured.fromSeconds)} to ${afterT0(captured.toSeconds)}` : ""),
  },
];
