import { Group, Paper, Progress, Stack, Text, Title } from "@mantine/core";
import { useNow } from "../../app/clock";
import type { RunState } from "../../archive/types";
import { Moment } from "../../components/Moment";
import { PhaseBadge } from "../../components/PhaseBadge";
import { placeText } from "../../components/place";
import { span } from "../../components/time";
import { Trouble } from "../../components/Trouble";
import type { Experiment } from "../../types";
import { Actions } from "./Actions";
import classes from "./experiment.module.css";
import { Origin } from "./Origin";
import { courseOf, isOver, isWaiting, progressOf, stage, whyWaiting } from "./state";
import { Emulation } from "./Emulation";

interface HeaderProps {
  experiment: Experiment;
  state: RunState | undefined;
  trouble: unknown;
}

/** Header says how the run goes. Its first lines stay in view. */
export function Header({ experiment: e, state, trouble }: HeaderProps) {
  return (
    <>
      <Paper className={classes.sticky ?? ""} py="xs">
        <Stack gap={4}>
          <Group justify="space-between" gap="xs">
            <Group gap="sm">
              <Title order={1} size="h2" className={classes.name ?? ""}>
                <Text span inherit c="dimmed">
                  {e.metadata.namespace}/
                </Text>
                {e.metadata.name}
              </Title>
              <PhaseBadge phase={stage(e)} />
            </Group>
            <Actions experiment={e} />
          </Group>
          <Group gap="md" justify="space-between">
            <Emulation experiment={e} state={state} />
            <Clock experiment={e} />
          </Group>
          <Advance experiment={e} />
        </Stack>
      </Paper>
      <Stack gap={4}>
        {isWaiting(e) ? <Waiting experiment={e} /> : e.status?.message && <Text>{e.status.message}</Text>}
        <Origin experiment={e} state={state} />
        {!isWaiting(e) && <Trouble error={trouble} title="Live figures could not be read" />}
      </Stack>
    </>
  );
}

/** Clock shows T0, the time since, and the end. */
function Clock({ experiment: e }: { experiment: Experiment }) {
  const course = courseOf(e, useNow());
  if (!course) return null;
  const over = isOver(e);
  const end = course.end === undefined ? undefined : new Date(course.end).toISOString();
  return (
    <Group gap="md" fz="sm">
      <Text inherit fw={600} ff="monospace">
        {course.elapsed < 0 ? `T0 in ${span(-course.elapsed)}` : `T0+${span(course.elapsed)}`}
      </Text>
      <Text inherit>
        T0 <Moment time={e.status?.t0} />
      </Text>
      {end === undefined ? (
        <Text inherit>no end: it runs until it is stopped</Text>
      ) : (
        <Text inherit>
          {over ? "ended" : "timeline ends"} <Moment time={end} t0={e.status?.t0} />
        </Text>
      )}
    </Group>
  );
}

function Advance({ experiment: e }: { experiment: Experiment }) {
  const progress = progressOf(e);
  if (progress === undefined || isOver(e)) return null;
  const nodes = e.status?.nodes;
  const step = e.status?.step;
  return (
    <Group gap="sm" wrap="nowrap">
      <Progress.Root size="sm" flex={1}>
        <Progress.Section value={progress} aria-label={`Progress of the run: ${progress} %`} />
      </Progress.Root>
      <Text fz="sm" miw="fit-content">
        {Math.round(progress)} %{step ? `, step ${step}` : ""}
        {nodes?.total !== undefined && nodes.ready !== nodes.total ? `, ${nodes.ready ?? 0} of ${nodes.total} nodes up` : ""}
      </Text>
    </Group>
  );
}

function Waiting({ experiment: e }: { experiment: Experiment }) {
  const { position, expectedStart } = e.status?.queue ?? {};
  return (
    <Text>
      Waits in the queue of the cluster{position ? `, ${placeText(position)}` : ""}
      {": "}
      {whyWaiting(e) || "the operator has not looked at it yet"}
      {". "}
      {expectedStart ? (
        <>
          Expected start: <Moment time={expectedStart} />, if all runs end in time.
        </>
      ) : (
        "When it starts is not known."
      )}
    </Text>
  );
}
