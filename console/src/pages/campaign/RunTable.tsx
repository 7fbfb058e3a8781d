import { Anchor, Button, Group, Select, Text, TextInput, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useChoices } from "../../components/address";
import { CompareLink } from "../../components/CompareLink";
import { count, many, yesOrNo } from "../../components/figures";
import { sortFrom, writeSort } from "../../components/sorting";
import { span } from "../../components/time";
import { VirtualTable, type Column } from "../../components/VirtualTable";
import { measureOf, valueOf, type Measure } from "./measures";
import { ofLastSpec, pointsOf, withWords, type Point } from "./points";
import { levelOf, offByMilliseconds, pageOf, type Axis, type Fixed, type Run } from "./round";

interface RunTableProps {
  namespace: string;
  runs: readonly Run[];
  axes: readonly Axis[];
  measure: Measure;
  /** cell of the map whose runs are shown; all without one. */
  cell: Fixed | undefined;
}

// An address of more runs is longer than some programs take.
const mostInAddress = 200;

/** RunTable lists the runs, or the points with their repeats together. */
export function RunTable({ namespace, runs, axes, measure, cell }: RunTableProps) {
  const [choice, choose] = useChoices();
  const ofPoints = choice("rows") === "points";
  const find = choice("find") ?? "";
  const shown = useMemo(() => withWords(runs, find), [runs, find]);
  const columns = useMemo(() => runColumns(namespace, axes, measure), [namespace, axes, measure]);
  const points = useMemo(() => pointsOf(shown), [shown]);
  const ofPoint = useMemo(() => pointColumns(axes, measure), [axes, measure]);
  const finished = shown.filter(({ phase, uid }) => phase === "Succeeded" && uid !== "");
  const table = {
    label: ofPoints ? "Points" : "Runs",
    sort: sortFrom(choice("sort")),
    onSort: (sort: ReturnType<typeof sortFrom>) => {
      choose({ sort: writeSort(sort) });
    },
  };
  return (
    <section aria-labelledby="runs">
      <Title order={2} size="h3" id="runs">
        {ofPoints ? "Points" : "Runs"}
      </Title>
      <Group align="end" mb="xs">
        <Select
          label="A row for each"
          data={[
            { value: "runs", label: "run" },
            { value: "points", label: "point: repeats together" },
          ]}
          value={ofPoints ? "points" : "runs"}
          allowDeselect={false}
          onChange={(rows) => {
            choose({ rows: rows === "points" ? rows : undefined, sort: undefined });
          }}
        />
        <TextInput
          label="Find by words"
          value={find}
          onChange={(event) => {
            choose({ find: event.currentTarget.value || undefined });
          }}
        />
        {finished.length >= 2 && finished.length <= mostInAddress && <CompareLink runs={finished.map(({ uid }) => `${namespace}/${uid}`)}>{`Compare these ${count(finished.length)}`}</CompareLink>}
        {cell && (
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => {
              choose({ cell: undefined, row: undefined });
            }}
          >
            Show the runs of all cells
          </Button>
        )}
      </Group>
      <Text size="sm">
        {cell && `${Object.entries(cell).map(([axis, level]) => `${axis} ${level}`).join(", ")}: `}
        {ofPoints ? many(points.length, "point") : many(shown.length, "run")}
      </Text>
      {ofPoints ? <VirtualTable {...table} columns={ofPoint} rows={points} keyOf={({ name }) => name} /> : <VirtualTable {...table} columns={columns} rows={shown} keyOf={({ name, uid }) => `${name} ${uid}`} />}
    </section>
  );
}

const fixedMeasures = ["delivered", "median"];

function measureColumns<Row>(measure: Measure, runsOf: (row: Row) => readonly Run[]): Column<Row>[] {
  const shown = [...fixedMeasures.map(measureOf), ...(fixedMeasures.includes(measure.id) ? [] : [measure])];
  return shown.map((each) => ({ id: each.id, head: each.label, numeric: true, value: (row) => valueOf(each, runsOf(row)), show: (row) => each.write(valueOf(each, runsOf(row))) }));
}

function axisColumns<Row>(axes: readonly Axis[], runOf: (row: Row) => Run | undefined): Column<Row>[] {
  return axes.map(({ name }) => ({
    id: `axis.${name}`,
    head: name,
    value: (row) => {
      const run = runOf(row);
      return run && levelOf(run, name);
    },
  }));
}

function runColumns(namespace: string, axes: readonly Axis[], measure: Measure): Column<Run>[] {
  return [
    {
      id: "name",
      head: "Run",
      value: ({ name }) => name,
      show: (run) => {
        const page = pageOf(namespace, run);
        return page ? <Anchor size="sm" renderRoot={(props) => <Link {...props} {...page} />}>{run.name}</Anchor> : run.name;
      },
    },
    { id: "phase", head: "Phase", value: ({ phase }) => phase },
    ...axisColumns<Run>(axes, (run) => run),
    { id: "repeat", head: "Repeat", numeric: true, value: ({ repeat }) => repeat },
    ...measureColumns<Run>(measure, (run) => [run]),
    { id: "kept", head: "Kept up", value: ({ measured }) => yesOrNo(measured?.keptUp) },
    { id: "offBy", head: "Off by at most", numeric: true, value: ({ measured }) => offByMilliseconds(measured?.offBy), show: ({ measured }) => measured?.offBy ?? "–" },
    { id: "warningCount", head: "Warnings", numeric: true, value: ({ measured }) => measured?.warnings },
    { id: "gapCount", head: "Gaps", numeric: true, value: ({ measured }) => measured?.gaps },
    { id: "took", head: "Took", numeric: true, value: ({ tookSeconds }) => tookSeconds, show: ({ tookSeconds }) => (tookSeconds === undefined ? "–" : span(tookSeconds)) },
    { id: "message", head: "Message", value: ({ message }) => message },
  ];
}

function pointColumns(axes: readonly Axis[], measure: Measure): Column<Point>[] {
  return [
    { id: "name", head: "Point", value: ({ name }) => name },
    ...axisColumns<Point>(axes, ({ runs }) => runs[0]),
    { id: "runs", head: "Runs", numeric: true, value: ({ runs }) => runs.length },
    { id: "measured", head: "Measured", numeric: true, value: ({ runs }) => ofLastSpec(runs).length },
    { id: "failed", head: "Failed", numeric: true, value: ({ runs }) => runs.filter(({ phase }) => phase === "Failed" || phase === "Lost").length },
    ...measureColumns<Point>(measure, ({ runs }) => runs),
  ];
}
