import type { Messages, Quantiles } from "../../archive/types";
import { count, duration, percent } from "../../components/figures";
import type { Column } from "../../components/VirtualTable";

/** Deliveries are what a row has of a run, a condition or a publisher. */
export interface Deliveries {
  messages: Messages;
  delaySeconds: Quantiles | null;
}

export const offeredColumn = countColumn("offered", "Offered", ({ offered, expected }) => offered ?? expected);

export const deliveredColumn: Column<Deliveries> = {
  id: "delivered",
  head: "Delivered",
  numeric: true,
  value: ({ messages }) => messages.deliveredPercent,
  show: ({ messages }) => percent(messages.deliveredPercent),
};

/** delayColumns of a row, by the quantile that each shows. */
export const delayColumns = {
  median: delayColumn("median", "Median delay"),
  mean: delayColumn("mean", "Mean delay"),
  p95: delayColumn("p95", "95th percentile"),
  max: delayColumn("max", "Greatest"),
};

/** countColumn has a number of messages. */
export function countColumn(id: string, head: string, value: (messages: Messages) => number | undefined): Column<Deliveries> {
  return { id, head, numeric: true, value: ({ messages }) => value(messages), show: ({ messages }) => count(value(messages)) };
}

function delayColumn(id: "median" | "mean" | "p95" | "max", head: string): Column<Deliveries> {
  return { id, head, numeric: true, value: ({ delaySeconds }) => delaySeconds?.[id], show: ({ delaySeconds }) => duration(delaySeconds?.[id]) };
}
