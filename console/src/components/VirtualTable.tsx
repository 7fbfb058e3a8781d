import { Table, UnstyledButton } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState, type ReactNode } from "react";
import { sortRows, type SortBy } from "./sorting";
import classes from "./VirtualTable.module.css";

export interface Column<Row> {
  /** id stands in addresses, too. */
  id: string;
  head: string;
  /** What rows are sorted by, and what is shown without show. */
  value: (row: Row) => string | number | null | undefined;
  show?: (row: Row) => ReactNode;
  numeric?: boolean;
}

export interface VirtualTableProps<Row> {
  /** label says what the rows are. */
  label: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  /** Sorting is kept by the table itself without these. */
  sort?: SortBy | undefined;
  onSort?: (sort: SortBy | undefined) => void;
  height?: number;
  empty?: string;
}

const rowHeight = 36;
// As many rows are drawn in full: searching in the page and printing then find all of them.
const fewRows = 60;

/** VirtualTable draws only those of many rows that are in view. A click on a head sorts. */
export function VirtualTable<Row>({ label, columns, rows, keyOf, sort, onSort, height = 480, empty = "There are none." }: VirtualTableProps<Row>) {
  const [own, setOwn] = useState<SortBy | undefined>();
  const by = onSort ? sort : own;
  const sorted = useMemo(() => sortRows(rows, columns, by), [rows, columns, by]);
  const viewport = useRef<HTMLDivElement>(null);
  const virtual = sorted.length > fewRows;
  // The virtualizer is read in this component only, so nothing keeps an old state of it.
  // eslint-disable-next-line react-hooks/incompatible-library
  const virtualizer = useVirtualizer({ count: virtual ? sorted.length : 0, getScrollElement: () => viewport.current, estimateSize: () => rowHeight, overscan: 12 });
  const shown = virtual ? virtualizer.getVirtualItems() : sorted.map((_, index) => ({ index, start: index * rowHeight, end: (index + 1) * rowHeight }));
  const before = virtual ? (shown[0]?.start ?? 0) : 0;
  const after = virtual ? virtualizer.getTotalSize() - (shown.at(-1)?.end ?? 0) : 0;
  return (
    <div ref={viewport} className={classes.viewport} style={{ maxHeight: virtual ? height : undefined }} role="group" aria-label={label} tabIndex={0}>
      <Table striped highlightOnHover stickyHeader aria-rowcount={sorted.length + 1} aria-label={label} className={classes.table ?? ""}>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Head key={column.id} column={column} sort={by} onSort={onSort ?? setOwn} />
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          <Spacer height={before} />
          {shown.map(({ index }) => {
            const row = sorted[index];
            if (row === undefined) return null;
            return (
              <Table.Tr key={keyOf(row)} aria-rowindex={index + 2}>
                {columns.map((column) => (
                  <Table.Td key={column.id} className={column.numeric ? classes.numeric : classes.text} title={titleOf(column, row)}>
                    {column.show ? column.show(row) : (column.value(row) ?? "–")}
                  </Table.Td>
                ))}
              </Table.Tr>
            );
          })}
          <Spacer height={after} />
          {sorted.length === 0 && (
            <Table.Tr>
              <Table.Td colSpan={columns.length}>{empty}</Table.Td>
            </Table.Tr>
          )}
        </Table.Tbody>
      </Table>
    </div>
  );
}

/** titleOf a cell is its whole text, of which a narrow column shows the beginning. */
function titleOf<Row>({ numeric, value }: Column<Row>, row: Row): string | undefined {
  const text = numeric ? undefined : value(row);
  return typeof text === "string" && text !== "" ? text : undefined;
}

function Head<Row>({ column, sort, onSort }: { column: Column<Row>; sort: SortBy | undefined; onSort: (sort: SortBy | undefined) => void }) {
  const mine = sort?.id === column.id ? sort : undefined;
  const next = mine === undefined ? { id: column.id, descending: column.numeric === true } : mine.descending === (column.numeric === true) ? { id: column.id, descending: !mine.descending } : undefined;
  return (
    <Table.Th aria-sort={mine === undefined ? "none" : mine.descending ? "descending" : "ascending"} className={column.numeric ? classes.numeric : undefined}>
      <UnstyledButton
        fz="sm"
        fw={700}
        onClick={() => {
          onSort(next);
        }}
      >
        {column.head}
        {mine ? (mine.descending ? " ▾" : " ▴") : ""}
      </UnstyledButton>
    </Table.Th>
  );
}

function Spacer({ height }: { height: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden="true">
      <td style={{ height, padding: 0 }} />
    </tr>
  );
}
