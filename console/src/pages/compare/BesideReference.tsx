import { Stack, Text, Title } from "@mantine/core";
import { useCallback, useMemo } from "react";
import type { Reference } from "../../archive/comparison";
import type { Inks } from "../../components/plots/inks";
import { PlotFigure, type PlotLibrary } from "../../components/plots/PlotFigure";
import { VirtualTable } from "../../components/VirtualTable";
import { closeness, drawMarks, marksOf, mostMarks, referenceColumns, referenceRows } from "./references";

/** BesideReference shows how close measured figures are to reference figures. */
export function BesideReference({ reference }: { reference: Reference }) {
  const { figures } = reference;
  const rows = useMemo(() => referenceRows(figures), [figures]);
  const marks = useMemo(() => marksOf(figures), [figures]);
  const draw = useCallback((plot: PlotLibrary, width: number, inks: Inks) => drawMarks(plot, marks.slice(0, mostMarks), width, inks), [marks]);
  return (
    <Stack component="section" gap="xs">
      <Title order={2} size="h3">
        Beside the reference
      </Title>
      <Text size="sm">
        {closeness(reference)}
      </Text>
      <VirtualTable label="Reference figures" columns={referenceColumns} rows={rows} keyOf={(row) => `${row.source} ${row.label} ${row.group} ${row.metric}`} empty="The reference has no figure of these runs." />
      {marks.length > 0 && (
        <PlotFigure title="How far the measured figures are from the reference" file="comparison-reference" draw={draw} columns={referenceColumns} rows={rows}>
          Lines: 95 % intervals. Dot: the interval covers the reference. Cross: it does not. Ring: there is no interval.
          {marks.length > mostMarks && ` The first ${mostMarks} of ${marks.length} are drawn; the table has all.`}
          {marks.length < figures.length && ` Not drawn, as not measured or the reference is 0: ${figures.length - marks.length}.`}
        </PlotFigure>
      )}
    </Stack>
  );
}
