import type { ComparedNetwork, Comparison, Estimate } from "../../archive/comparison";
import { bytesPerSecond, count, duration, metres, nothing } from "../../components/figures";
import type { Column } from "../../components/VirtualTable";
import { countColumn, delayColumns, deliveredColumn, offeredColumn, type Deliveries } from "./deliveries";
import { estimateText } from "./differences";
import { labelsOf, type Shown } from "./labels";

/** SizeRow has the median size of a run's messages on the wire, in bytes by protocol. */
export interface SizeRow {
  run: string;
  bytes: Record<string, number | null>;
}

/** sizeRows has a row for each run; none without captures of messages. */
export function sizeRows(comparison: Comparison): SizeRow[] {
  const sizes = comparison.messageSizes ?? [];
  if (sizes.length === 0) return [];
  return labelsOf(comparison).map((run, i) => ({ run, bytes: Object.fromEntries(sizes.map(({ protocol, runs }) => [protocol, runs[i]?.medianBytes ?? null])) }));
}

export function sizeColumns(comparison: Comparison): Column<SizeRow>[] {
  const ofProtocol = (comparison.messageSizes ?? []).map(({ protocol }): Column<SizeRow> => ({ id: `size-${protocol}`, head: protocol, numeric: true, value: ({ bytes }) => bytes[protocol], show: ({ bytes }) => sizeText(bytes[protocol]) }));
  return [{ id: "run", head: "Run", value: ({ run }) => run }, ...ofProtocol];
}

function sizeText(bytes: number | null | undefined): string {
  return bytes === null || bytes === undefined ? nothing : `${count(bytes)} B`;
}

/** VolumeRow has what the networks of a run or condition carried, in bytes a second by network. */
export interface VolumeRow {
  name: string;
  volumes: Record<string, Estimate | null>;
}

/** volumeRows are of runs, or of conditions where the server gives them. */
export function volumeRows(comparison: Comparison, of: Shown): VolumeRow[] {
  const networks = comparison.networks ?? [];
  if (networks.length === 0) return [];
  const row = (name: string, volume: (network: ComparedNetwork) => VolumeCell | undefined): VolumeRow => ({ name, volumes: Object.fromEntries(networks.map((network) => [network.name, estimateOf(volume(network))])) });
  if (of === "conditions" && networks.every(({ conditions }) => conditions)) return comparison.conditions.map(({ label, runs }, i) => row(`${label} (${runs.length})`, ({ conditions }) => conditions?.[i]));
  return labelsOf(comparison).map((name, i) => row(name, ({ runs }) => runs[i]));
}

type VolumeCell = ComparedNetwork["runs"][number] & Partial<NonNullable<ComparedNetwork["conditions"]>[number]>;

function estimateOf(cell: VolumeCell | undefined): Estimate | null {
  if (cell?.bytesPerSecond == null) return null;
  const interval = cell.confidence?.bytesPerSecond;
  return { estimate: cell.bytesPerSecond, low: interval?.low ?? null, high: interval?.high ?? null };
}

export function volumeColumns(comparison: Comparison): Column<VolumeRow>[] {
  const ofNetwork = (comparison.networks ?? []).map(({ name }): Column<VolumeRow> => ({ id: `volume-${name}`, head: name, numeric: true, value: ({ volumes }) => volumes[name]?.estimate, show: ({ volumes }) => estimateText(volumes[name], bytesPerSecond) }));
  return [{ id: "name", head: "Run or condition", value: ({ name }) => name }, ...ofNetwork];
}

/** PublisherRow has the figures of a publisher in a run. */
export interface PublisherRow extends Deliveries {
  name: string;
  node: string;
  run: string;
}

/** publisherRows has a row for each run of each publisher, without runs that do not have it. */
export function publisherRows(comparison: Comparison): PublisherRow[] {
  const labels = labelsOf(comparison);
  return (comparison.publishers ?? []).flatMap(({ name, node, runs }) => runs.flatMap(({ label, messages, delaySeconds }, i) => (messages ? [{ name, node, run: labels[i] ?? label, messages, delaySeconds }] : [])));
}

export const publisherColumns: Column<PublisherRow>[] = [
  { id: "publisher", head: "Publisher", value: ({ name }) => name },
  { id: "node", head: "Node", value: ({ node }) => node },
  { id: "run", head: "Run", value: ({ run }) => run },
  countColumn("sent", "Sent", ({ sent }) => sent),
  offeredColumn,
  deliveredColumn,
  countColumn("lost", "Lost", ({ lost }) => lost),
  delayColumns.median,
  delayColumns.mean,
  delayColumns.p95,
  delayColumns.max,
];

/** PictureRow has a run's medians of the picture of a group of nodes. */
export interface PictureRow {
  group: string;
  run: string;
  error: number | null;
  age: number | null;
}

/** pictureRows has a row for each run of each group; none where no run compared positions. */
export function pictureRows(comparison: Comparison): PictureRow[] {
  const labels = labelsOf(comparison);
  return (comparison.picture ?? []).flatMap(({ name, runs }) => runs.map(({ label, errorMedianMetres, ageMedianSeconds }, i) => ({ group: name, run: labels[i] ?? label, error: errorMedianMetres, age: ageMedianSeconds })));
}

export const pictureColumns: Column<PictureRow>[] = [
  { id: "group", head: "Group of the node", value: ({ group }) => group },
  { id: "run", head: "Run", value: ({ run }) => run },
  { id: "error", head: "Error, median", numeric: true, value: ({ error }) => error, show: ({ error }) => metres(error) },
  { id: "age", head: "Age, median", numeric: true, value: ({ age }) => age, show: ({ age }) => duration(age) },
];
