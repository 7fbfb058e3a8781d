import { Anchor, Box } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { runSize, yesOrNo } from "../../components/figures";
import { Age, Moment } from "../../components/Moment";
import { PhaseBadge } from "../../components/PhaseBadge";
import { RunLink } from "../../components/RunLink";
import { VirtualTable, type Column } from "../../components/VirtualTable";
import type { ArchivedRun } from "./archived";

/** RunTable is the table of archived runs; existing are the UIDs of experiments that were not deleted. */
export function RunTable({ runs, existing }: { runs: readonly ArchivedRun[]; existing: ReadonlySet<string | undefined> }) {
  // On a phone the columns that matter most are in view, the others beside them.
  const narrow = useMediaQuery("(max-width: 48em)");
  const namespace: Column<ArchivedRun> = { id: "namespace", head: "Namespace", value: (run) => run.namespace };
  const experiment: Column<ArchivedRun> = { id: "experiment", head: "Experiment", value: ({ uid }) => (existing.has(uid) ? "there" : undefined), show: (run) => (existing.has(run.uid) ? <ExperimentLink run={run} /> : "–") };
  const columns: Column<ArchivedRun>[] = [
    {
      id: "name",
      head: "Run",
      value: ({ name }) => name,
      show: (run) => (
        <Box maw={narrow ? 120 : undefined} style={{ overflow: "hidden", textOverflow: "ellipsis" }}>
          <RunLink size="sm" run={run}>
            {run.name}
          </RunLink>
        </Box>
      ),
    },
    ...(narrow ? [] : [namespace, experiment]),
    { id: "phase", head: "Phase", value: ({ phase }) => phase, show: ({ phase }) => <Box miw={92}>{phase ? <PhaseBadge phase={phase} /> : "–"}</Box> },
    { id: "t0", head: narrow ? "Ago" : "Started", value: ({ t0 }) => t0, show: ({ t0 }) => (t0 ? narrow ? <Age time={t0} /> : <Moment time={t0} /> : "–") },
    { id: "keptUp", head: "Kept up", value: ({ keptUp }) => yesOrNo(keptUp) },
    { id: "size", head: "Size", numeric: true, value: ({ bytes }) => bytes, show: ({ bytes }) => runSize(bytes) },
    { id: "problem", head: "Problem", value: ({ problem }) => problem || undefined, show: ({ problem }) => (problem ? "damaged records" : "–") },
    ...(narrow ? [experiment, namespace] : []),
    { id: "campaign", head: "Campaign", value: ({ campaign }) => campaign || undefined },
    { id: "uid", head: "UID", value: ({ uid }) => uid },
  ];
  return <VirtualTable label="Archived runs" columns={columns} rows={runs} keyOf={({ uid }) => uid} height={640} empty="No archived run matches the filters." />;
}

function ExperimentLink({ run: { namespace, name } }: { run: ArchivedRun }) {
  return (
    <Anchor size="sm" underline="always" aria-label={`open the experiment ${name}`} renderRoot={(props) => <Link {...props} to="/ns/$namespace/experiments/$name" params={{ namespace, name }} />}>
      open
    </Anchor>
  );
}
