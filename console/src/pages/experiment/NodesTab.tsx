import { Anchor, Box, Group, Stack, Text, TextInput, UnstyledButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { memo, useMemo } from "react";
import { useChoices } from "../../components/address";
import { Age } from "../../components/Moment";
import { Trouble } from "../../components/Trouble";
import { useRows } from "../../components/rows";
import { sortFrom, writeSort } from "../../components/sorting";
import { useObjects } from "../../kubernetes/hooks";
import { pods } from "../../kubernetes/kinds";
import { arrange, columns, nodeRows, orderOf, type Column, type NodeRow, type Order } from "./nodes";
import classes from "./nodes.module.css";
import type { TabProps } from "./tab";

const rowHeight = 44;

const titles: Record<Column, string> = { name: "Node", group: "Group", nem: "NEM id", host: "Host", state: "State", restarts: "Restarts" };

/** NodesTab is the table of nodes. Only rows in view are drawn. */
export default function NodesTab({ experiment: e, state }: TabProps) {
  const { objects, error } = useObjects(pods, { namespace: e.metadata.namespace ?? "", labelSelector: `vignette.dev/experiment-uid=${e.metadata.uid ?? ""}` });
  const [choice, choose] = useChoices();
  const words = choice("findNodes") ?? "";
  const sort = choice("sortNodes");
  const order = useMemo(() => orderOf(sortFrom(sort)), [sort]);
  const rows = useMemo(() => nodeRows(e, state, objects ?? []), [e, state, objects]);
  const shown = useMemo(() => arrange(rows, words, order), [rows, words, order]);
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <TextInput
          placeholder="Filter: name, group, host, app, state"
          aria-label="Filter nodes"
          value={words}
          onChange={(event) => {
            choose({ findNodes: event.currentTarget.value || undefined });
          }}
          w={{ base: "100%", xs: 320 }}
        />
        <Text size="sm" c="dimmed" role="status">
          {shown.length === rows.length ? `${rows.length} nodes` : `${shown.length} of ${rows.length} nodes`}
        </Text>
      </Group>
      <Trouble error={error} title="Pods could not be read: hosts and states may be missing" />
      <Rows rows={shown} order={order} onOrder={({ column, descending }) => { choose({ sortNodes: writeSort({ id: column, descending }) }); }} />
    </Stack>
  );
}

interface RowsProps {
  rows: NodeRow[];
  order: Order;
  onOrder: (order: Order) => void;
}

function Rows({ rows, order, onOrder }: RowsProps) {
  const { scroller, items, height } = useRows(rows.length, rowHeight);
  return (
    <Box ref={scroller} className={classes.scroller ?? ""} tabIndex={0} role="table" aria-label="Nodes" aria-rowcount={rows.length + 1}>
      <Heads order={order} onOrder={onOrder} />
      <Box role="rowgroup" pos="relative" h={height} className={classes.body ?? ""}>
        {items.map((item) => {
          const row = rows[item.index];
          return row && <Line key={row.name} row={row} index={item.index} top={item.start} />;
        })}
      </Box>
    </Box>
  );
}

function Heads({ order, onOrder }: Pick<RowsProps, "order" | "onOrder">) {
  const head = (column: Column) => {
    const chosen = order.column === column;
    const direction = order.descending ? "descending" : "ascending";
    return (
      <Box key={column} role="columnheader" aria-sort={chosen ? direction : "none"}>
        <UnstyledButton
          fw={600}
          fz="sm"
          onClick={() => {
            onOrder({ column, descending: chosen && !order.descending });
          }}
        >
          {titles[column]} {chosen ? (order.descending ? "▾" : "▴") : ""}
        </UnstyledButton>
      </Box>
    );
  };
  const plain = (title: string) => (
    <Text key={title} role="columnheader" fw={600} fz="sm">
      {title}
    </Text>
  );
  return (
    <Box role="rowgroup" className={classes.heads ?? ""}>
      <Box role="row" className={classes.row ?? ""} aria-rowindex={1}>
        {columns.slice(0, 4).map(head)}
        {plain("Addresses")}
        {plain("Apps")}
        {columns.slice(4).map(head)}
        {plain("Reported")}
        {plain("Last words")}
      </Box>
    </Box>
  );
}

// Rows that stay in view are not drawn again while the table scrolls.
const Line = memo(function Line({ row, index, top }: { row: NodeRow; index: number; top: number }) {
  const cell = (text: string | number) => (
    <Text role="cell" fz="sm" className={classes.cell ?? ""} title={String(text)}>
      {text}
    </Text>
  );
  return (
    <Box role="row" aria-rowindex={index + 2} className={`${classes.row ?? ""} ${classes.placed ?? ""}`} style={{ transform: `translateY(${top}px)`, height: rowHeight }}>
      <Box role="cell" className={classes.cell ?? ""}>
        <Anchor fz="sm" underline="always" title={`Logs of ${row.name}`} renderRoot={(props) => <Link {...props} to="." search={(before: object) => ({ ...before, tab: "logs", node: row.name })} />}>
          {row.name}
        </Anchor>
      </Box>
      {cell(row.group)}
      {cell(row.nem)}
      {cell(row.host)}
      {cell(row.addresses.join(", "))}
      {cell(row.apps.join(", "))}
      <Text role="cell" fz="sm" className={classes.cell ?? ""} {...(row.isBad && { fw: 700 })} title={row.state}>
        {row.isBad ? `✗ ${row.state}` : row.state}
      </Text>
      {cell(row.restarts)}
      <Box role="cell" fz="sm">
        <Age time={row.reportedAt} />
      </Box>
      {cell(row.lastWords)}
    </Box>
  );
});
