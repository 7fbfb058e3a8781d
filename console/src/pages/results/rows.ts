import type { Figures, Results } from "../../archive/types";
import { count, duration, percent, range } from "../../components/figures";
import type { Column } from "../../components/VirtualTable";
import { deliveredOf, neverSentOf, offeredOf } from "./words";

/** FigureRow is a line of the table of figures. */
export interface FigureRow {
  key: string;
  name: string;
  /** of is the publisher's node, or what the group is. */
  of: string;
  figures: Figures;
}

/** tables of figures that results can have. */
export const tables = ["groups", "pairs", "publishers"] as const;
export type TableName = (typeof tables)[number];

const meanings: Record<string, string> = {
  all: "every delivery",
  radio: "sender and receiver on different nodes",
  local: "within a node",
  cross: "between node groups",
};

/** figureRows of one of the tables. */
export function figureRows(results: Results, table: TableName): FigureRow[] {
  switch (table) {
    case "groups":
      return (results.groups ?? []).map((group) => ({ key: group.name, name: group.name, of: meanings[group.name] ?? "publishers of this node group", figures: group }));
    case "pairs":
      return (results.pairs ?? []).map((pair) => ({ key: `${pair.from} ${pair.to}`, name: `${pair.from} to ${pair.to}`, of: "", figures: pair }));
    case "publishers":
      return (results.publishers ?? []).map((publisher) => ({ key: publisher.name, name: publisher.name, of: publisher.node, figures: publisher }));
  }
}

const numeric = (id: string, head: string, value: (row: FigureRow) => number | null | undefined, write: (value: number | null | undefined) => string): Column<FigureRow> => ({
  id,
  head,
  numeric: true,
  value,
  show: (row) => write(value(row)),
});

const ofMessages: Column<FigureRow>[] = [
  numeric("sent", "Sent", ({ figures }) => figures.messages.sent, count),
  numeric("offered", "Offered", ({ figures }) => offeredOf(figures), count),
  numeric("delivered", "Delivered", ({ figures }) => deliveredOf(figures), percent),
  { id: "interval", head: "95 % interval", value: ({ figures }) => range(figures.confidence?.deliveredPercent, percent), numeric: true },
  numeric("lost", "Lost", ({ figures }) => figures.messages.lost, count),
  numeric("neverSent", "Never sent", ({ figures }) => neverSentOf(figures), count),
  numeric("duplicates", "Duplicates", ({ figures }) => figures.messages.duplicates, count),
];

const ofDelays: Column<FigureRow>[] = (["min", "p25", "median", "mean", "p75", "p95", "max"] as const).map((id) =>
  numeric(id, { min: "Least", p25: "p25", median: "Median", mean: "Mean", p75: "p75", p95: "p95", max: "Greatest" }[id], ({ figures }) => figures.delaySeconds?.[id], duration),
);

const ofRequests: Column<FigureRow>[] = [
  numeric("receipts", "Receipts", ({ figures }) => figures.requests?.receiptPercent, percent),
  numeric("response", "Mean response", ({ figures }) => figures.requests?.responseSeconds?.mean, duration),
];

/** figureColumns of a table; those of requests where there are some. */
export function figureColumns(table: TableName, rows: readonly FigureRow[]): Column<FigureRow>[] {
  const head = { groups: "Group", pairs: "Pair of node groups", publishers: "Publisher" }[table];
  const of: Column<FigureRow>[] = table === "pairs" ? [] : [{ id: "of", head: table === "groups" ? "Deliveries" : "Node", value: (row) => row.of }];
  const requests = rows.some(({ figures }) => figures.requests) ? ofRequests : [];
  return [{ id: "name", head, value: (row) => row.name }, ...of, ...ofMessages, ...ofDelays, ...requests];
}

/** found are the rows that have the searched text in their name or node. */
export function found(rows: readonly FigureRow[], search: string): readonly FigureRow[] {
  const wanted = search.trim().toLowerCase();
  return wanted === "" ? rows : rows.filter(({ name, of }) => `${name} ${of}`.toLowerCase().includes(wanted));
}
