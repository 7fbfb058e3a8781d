import { Group, Select, Stack, Text, Title } from "@mantine/core";
import { useCallback, useMemo } from "react";
import type { Compared, ComparedGroup, ComparedRun, Comparison, Difference, ReferenceFigure } from "../../archive/comparison";
import { useChoices } from "../../components/address";
import { duration, percent, range, yesOrNo } from "../../components/figures";
import { boxesOf } from "../../components/plots/boxes";
import { BoxFigure } from "../../components/plots/BoxFigure";
import { PlotFigure, type PlotLibrary } from "../../components/plots/PlotFigure";
import type { Inks } from "../../components/plots/inks";
import { RunLink } from "../../components/RunLink";
import { VirtualTable, type Column } from "../../components/VirtualTable";
import { delayColumns, deliveredColumn, offeredColumn } from "./deliveries";
import { chosenEffects, differenceColumns, differenceRows, drawEffects, effectsOf, mostEffects, requestDifferenceColumns, type Times } from "./differences";
import { hasRepeats, labelsOf, shownOf, type Shown } from "./labels";
import { boxReferences, referenceText, referencesOf } from "./references";

/** Distributions shows delays and losses of the runs, and by how much they differ. */
export function Distributions({ comparison }: { comparison: Comparison }) {
  const [choice, choose] = useChoices();
  const group = comparison.groups.find(({ name }) => name === choice("group")) ?? comparison.groups[0];
  const repeats = hasRepeats(comparison);
  const of = shownOf(comparison, choice("of"));
  if (!group) return <Text>These runs have no group of deliveries in common.</Text>;
  return (
    <Stack>
      <Group align="end">
        <Select
          label="Deliveries of group"
          data={comparison.groups.map(({ name }) => name)}
          value={group.name}
          allowDeselect={false}
          onChange={(name) => {
            choose({ group: name ?? undefined });
          }}
        />
        {repeats && (
          <Select
            label="Show"
            data={[
              { value: "conditions", label: "conditions: repeats together" },
              { value: "runs", label: "each run" },
            ]}
            value={of}
            allowDeselect={false}
            onChange={(value) => {
              choose({ of: value === "runs" ? "runs" : undefined });
            }}
          />
        )}
      </Group>
      <Side comparison={comparison} group={group} of={of} />
      <BothEffects group={group.name} of={group} />
      {comparison.axes?.map(({ axis, groups }) => (
        <section key={axis}>
          <Title order={2} size="h3">
            Levels of {axis}
          </Title>
          <BothEffects group={`${axis} of ${group.name}`} of={groups.find(({ name }) => name === group.name)} />
        </section>
      ))}
    </Stack>
  );
}

interface SideRow extends Compared {
  key: string;
  name: string;
  /** run that has a page; a condition has none. */
  run?: { namespace: string; uid: string; keptUp: boolean | null };
  /** why it is not said that the run kept up. */
  why?: string | undefined;
  references: ReferenceFigure[];
}

function sideRows(comparison: Comparison, group: ComparedGroup, of: Shown): SideRow[] {
  const figures = comparison.reference?.figures ?? [];
  if (of === "conditions")
    return group.conditions.map((condition) => ({ ...condition, key: condition.label, name: `${condition.label} (${condition.runs})`, references: referencesOf(figures, group.name, [condition.label]) }));
  const labels = labelsOf(comparison);
  return group.runs.map((run) => {
    const at = comparison.runs.findIndex(({ uid }) => uid === run.uid);
    const found = comparison.runs[at];
    const references = referencesOf(figures, group.name, [run.label, ...(found ? [found.condition] : [])]);
    return { ...run, key: run.uid, name: labels[at] ?? run.label, ...(found && { run: found, why: whyOf(comparison, found) }), references };
  });
}

/** whyOf a run's verdict is among the gaps of the comparison. */
function whyOf({ gaps }: Comparison, { experiment, uid }: ComparedRun): string | undefined {
  return gaps?.find(({ what }) => what === `verdict of ${experiment}@${uid.slice(0, 8)}`)?.reason;
}

function keptUpText({ run }: SideRow): string {
  return run === undefined ? "" : (yesOrNo(run.keptUp) ?? "not known");
}

function KeptUp({ row }: { row: SideRow }) {
  const { run, why } = row;
  if (!run || why === undefined) return keptUpText(row);
  return (
    <RunLink size="sm" title={why} run={run} part="gaps">
      {keptUpText(row)}: why?
    </RunLink>
  );
}

function Side({ comparison, group, of }: { comparison: Comparison; group: ComparedGroup; of: Shown }) {
  const rows = useMemo(() => sideRows(comparison, group, of), [comparison, group, of]);
  const boxes = useMemo(() => boxesOf(rows.map(({ name, delaySeconds, references }) => ({ name, quantiles: delaySeconds, references: boxReferences(references) }))), [rows]);
  const responses = useMemo(() => boxesOf(rows.map(({ name, requests }) => ({ name, quantiles: requests?.responseSeconds }))), [rows]);
  const asked = rows.some(({ requests }) => requests);
  const referred = rows.some(({ references }) => references.length > 0);
  const shown = [...columns, ...(referred ? [referenceColumn] : []), ...(asked ? requestColumns : [])];
  return (
    <>
      <VirtualTable label="Runs side by side" columns={shown} rows={rows} keyOf={({ key }) => key} />
      <BoxFigure title={`Delay of group ${group.name}`} file="comparison-delays" boxes={boxes} what="delay" none="nothing was received." />
      {responses.length > 0 && <BoxFigure title={`Response time of group ${group.name}`} file="comparison-response-times" boxes={responses} what="response time" none="no request had a receipt." />}
    </>
  );
}

function BothEffects({ group, of }: { group: string; of: Pick<ComparedGroup, "differences" | "requestDifferences"> | undefined }) {
  return (
    <>
      <Effects group={group} time="delay" differences={of?.differences ?? none} />
      <Effects group={group} time="response time" differences={of?.requestDifferences ?? none} />
    </>
  );
}

// The same list each time, as rows are made again of another.
const none: readonly Difference[] = [];

const effectsOn = {
  delay: { file: "comparison-effects", label: "Differences of group", columns: differenceColumns },
  "response time": { file: "comparison-request-effects", label: "Differences of requests of group", columns: requestDifferenceColumns },
};

function Effects({ group, time, differences }: { group: string; time: Times; differences: readonly Difference[] }) {
  const rows = useMemo(() => differenceRows(differences, time), [differences, time]);
  const effects = useMemo(() => effectsOf(differences), [differences]);
  const draw = useCallback((plot: PlotLibrary, width: number, inks: Inks) => drawEffects(plot, chosenEffects(effects), width, inks, time), [effects, time]);
  const { file, label, columns } = effectsOn[time];
  if (differences.length === 0) return null;
  return (
    <>
      {effects.length > 0 && (
        <PlotFigure title={`Effect on ${time}s of group ${group}`} file={file} draw={draw} columns={columns} rows={rows}>
          Dots: Cliff&apos;s delta. Lines: its 95 % interval. 1: always longer. 0: neither tends to be.
          {effects.length > mostEffects && ` The ${mostEffects} greatest of ${effects.length} are drawn; the table has all.`}
        </PlotFigure>
      )}
      <VirtualTable label={`${label} ${group}`} columns={columns} rows={rows} keyOf={(row) => String(row.pair)} />
    </>
  );
}

const columns: Column<SideRow>[] = [
  {
    id: "name",
    head: "Run or condition",
    value: ({ name }) => name,
    show: ({ name, run }) => (run ? <RunLink size="sm" run={run}>{name}</RunLink> : name),
  },
  { id: "keptUp", head: "Kept up", value: keptUpText, show: (row) => <KeptUp row={row} /> },
  offeredColumn,
  deliveredColumn,
  { id: "deliveredRange", head: "95 % interval of delivered", numeric: true, value: ({ confidence }) => range(confidence?.deliveredPercent, percent) },
  delayColumns.median,
  { id: "medianRange", head: "95 % interval of median", numeric: true, value: ({ confidence }) => range(confidence?.medianSeconds, duration) },
  delayColumns.mean,
  { id: "meanRange", head: "95 % interval of mean", numeric: true, value: ({ confidence }) => range(confidence?.meanSeconds, duration) },
  delayColumns.p95,
  delayColumns.max,
];

const referenceColumn: Column<SideRow> = { id: "reference", head: "Reference", value: ({ label, references }) => references.map((figure) => referenceText(figure, label)).join("; ") };

const requestColumns: Column<SideRow>[] = [
  { id: "receipts", head: "Receipts", numeric: true, value: ({ requests }) => requests?.receiptPercent, show: ({ requests }) => percent(requests?.receiptPercent) },
  { id: "response", head: "Mean response", numeric: true, value: ({ requests }) => requests?.responseSeconds?.mean, show: ({ requests }) => duration(requests?.responseSeconds?.mean) },
];
