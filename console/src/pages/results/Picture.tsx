import { Loader, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import type { ManifestFile } from "../../archive/types";
import { PlotFigure, type PlotLibrary, type TextRow } from "../../components/plots/PlotFigure";
import { TableSection } from "../../components/TableSection";
import { Trouble } from "../../components/Trouble";
import { OfTable } from "./OfTable";
import type { PartProps } from "./part";
import { curveColumns, curveLegend, curveQuery, drawCurve, groupColumns, pairColumns, pairsQuery, pairWords } from "./picture";

/** Picture shows how old and how far off the positions were that subscribers had of other nodes. */
export function Picture({ namespace, uid, state, results: { picture } }: PartProps) {
  if (!picture) return <Text>No positions were compared.</Text>;
  const of = { namespace, uid };
  return (
    <Stack>
      <TableSection
        title="Error and age by group"
        note={`Error: horizontal distance from the freshest position that a subscriber has received of a node to the node's true position at that time. Age: time since that position was made. Both are sampled every ${picture.sampleSeconds} s. The map shows true and reported positions.`}
        columns={groupColumns}
        rows={picture.groups ?? []}
        keyOf={({ name }) => name}
      />
      <OfTable {...of} title="Error of the picture over time" path="results/picture-times.csv">
        {(file) => <OverTime {...of} file={file} name={state.plan.name} />}
      </OfTable>
      <OfTable {...of} title="Pairs with the greatest error" path="results/picture.csv">
        {(file) => <WorstPairs {...of} file={file} />}
      </OfTable>
    </Stack>
  );
}

interface OfRun {
  namespace: string;
  uid: string;
}

function OverTime({ namespace, uid, file, name }: OfRun & { file: ManifestFile; name: string }) {
  const { data, error } = useQuery(curveQuery(namespace, uid, file));
  const draw = useCallback((plot: PlotLibrary, width: number) => drawCurve(plot, data?.moments ?? [], width), [data]);
  const rows = useMemo(() => (data?.moments ?? []).map((moment): TextRow => ({ ...moment })), [data]);
  if (error) return <Trouble error={error} title="Error of the picture over time: the table could not be read" />;
  if (!data) return <Loader aria-label="Error of the picture over time: the table is being read" />;
  return (
    <PlotFigure title="Error of the picture over time" file={`${name}-picture-over-time`} draw={draw} columns={curveColumns} rows={rows} legend={curveLegend}>
      Over all pairs of a subscriber and a node on which it has a position.
      {data.seconds > 1 && ` Averages over ${data.seconds} s.`}
    </PlotFigure>
  );
}

function WorstPairs({ namespace, uid, file }: OfRun & { file: ManifestFile }) {
  const { data, error } = useQuery(pairsQuery(namespace, uid, file));
  if (error) return <Trouble error={error} title="Pairs with the greatest error: the table could not be read" />;
  if (!data) return <Loader aria-label="Pairs with the greatest error: the table is being read" />;
  return (
    <TableSection title="Pairs with the greatest error" note={pairWords(data, file.path)} columns={pairColumns} rows={data.rows} keyOf={({ subscriber, node }) => `${subscriber} ${node}`} />
  );
}
