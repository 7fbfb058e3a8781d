import { Text } from "@mantine/core";
import { useCallback, useMemo } from "react";
import { boxCaption, boxColumns, chosenBoxes, diamondCaption, drawBoxes, mostBoxes, type Box } from "./boxes";
import { PlotFigure, type PlotLibrary, type TextRow } from "./PlotFigure";
import type { Inks } from "./inks";

interface BoxFigureProps {
  title: string;
  file: string;
  /** boxes must be the same array until they change. */
  boxes: readonly Box[];
  /** what the quantiles are of. */
  what: string;
  none: string;
}

/** BoxFigure draws a box for each group, publisher or run, from exact quantiles. */
export function BoxFigure({ title, file, boxes, what, none }: BoxFigureProps) {
  const draw = useCallback((plot: PlotLibrary, width: number, inks: Inks) => drawBoxes(plot, chosenBoxes(boxes), width, inks, what), [boxes, what]);
  const rows = useMemo(() => boxes.map(({ references: _, ...box }): TextRow => box), [boxes]);
  if (boxes.length === 0) return <Text size="sm">{`${title}: ${none}`}</Text>;
  return (
    <PlotFigure title={title} file={file} draw={draw} columns={boxColumns} rows={rows}>
      {boxCaption}
      {boxes.some(({ references }) => references) && diamondCaption}
      {boxes.length > mostBoxes && ` The ${mostBoxes} with the greatest medians of ${boxes.length} are drawn; the table has all.`}
    </PlotFigure>
  );
}
