import type { Column } from "../VirtualTable";
import type { TextRow } from "./PlotFigure";

/** figureColumn shows a row's text of an id, and sorts by the number beside it: units differ from row to row. */
export function figureColumn(id: string, head: string, numeric = false): Column<TextRow> {
  return { id, head, numeric, value: (row) => row[`${id}Number`], show: (row) => row[id] };
}
