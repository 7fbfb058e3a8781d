import { Box, Collapse, Stack, Table, Text, Title, Tooltip, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMemo } from "react";
import { useNow } from "../../app/clock";
import { Moment } from "../../components/Moment";
import { span } from "../../components/time";
import { useObjects } from "../../kubernetes/hooks";
import { liveChanges } from "../../kubernetes/kinds";
import { courseOf } from "./state";
import type { TabProps } from "./tab";
import { executed, ticksOf, timelineOf, type Bar, type Mark, type Row, type Timeline } from "./timeline";
import classes from "./timeline.module.css";

const mostTicks = 6;

/** TimelineView draws what happens when, to scale, with the present moment. */
export function TimelineView({ experiment: e, state }: TabProps) {
  const now = useNow();
  const course = courseOf(e, now);
  const elapsed = course?.elapsed ?? 0;
  const { objects } = useObjects(liveChanges, { namespace: e.metadata.namespace ?? "" });
  const own = useMemo(() => (objects ?? []).filter((change) => change.spec.experiment === e.metadata.name), [objects, e.metadata.name]);
  // A live cluster's axis need not grow each second.
  const grown = course?.duration === undefined ? 30 * Math.ceil(elapsed / 30) : 0;
  const timeline = useMemo(() => timelineOf(e.spec, own, e.status?.t0, grown), [e.spec, e.status?.t0, own, grown]);
  const armed = state?.plan.armed ?? [];
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        Timeline
      </Title>
      <Drawing timeline={timeline} elapsed={course && elapsed >= 0 ? elapsed : undefined} />
      {armed.length > 0 && course && (
        <Text size="sm" c="dimmed">
          {executed(armed, elapsed)}
        </Text>
      )}
      <InWords timeline={timeline} t0={e.status?.t0} />
    </Stack>
  );
}

function Drawing({ timeline, elapsed }: { timeline: Timeline; elapsed: number | undefined }) {
  const left = (seconds: number) => `${(100 * Math.min(seconds, timeline.end)) / timeline.end}%`;
  return (
    <Box className={classes.drawing ?? ""}>
      {timeline.rows.map((row) => (
        <Line key={row.name} row={row} left={left} end={timeline.end} />
      ))}
      <span />
      <Box className={classes.axis ?? ""}>
        {ticksOf(timeline.end, mostTicks).map((tick) => (
          <Text key={tick} span className={classes.tick ?? ""} style={{ left: left(tick) }}>
            {span(tick)}
          </Text>
        ))}
      </Box>
      {elapsed !== undefined && (
        <Box className={classes.overlay ?? ""} aria-hidden>
          <Box className={classes.now ?? ""} style={{ left: left(elapsed) }} />
        </Box>
      )}
    </Box>
  );
}

interface LineProps {
  row: Row;
  left: (seconds: number) => string;
  end: number;
}

function Line({ row, left, end }: LineProps) {
  const words = (bar: Bar) => `${row.name} runs from T0+${span(bar.from)} ${bar.to === undefined ? "on" : `to T0+${span(bar.to)}`}`;
  return (
    <>
      <Text span className={classes.label ?? ""} title={row.name}>
        {row.name}
      </Text>
      <Box className={classes.lane ?? ""}>
        {row.bars.map((bar) => (
          <Tooltip key={bar.from} label={words(bar)} events={{ hover: true, focus: true, touch: true }}>
            <UnstyledButton className={classes.bar ?? ""} aria-label={words(bar)} style={{ left: left(bar.from), width: `${(100 * Math.max(0, (bar.to ?? end) - bar.from)) / end}%` }} />
          </Tooltip>
        ))}
        {row.marks.map((mark, i) => (
          <Point key={i} mark={mark} left={left(mark.at)} />
        ))}
      </Box>
    </>
  );
}

const shapes: Record<Mark["kind"], string> = { set: "◆", live: "▼", waiting: "▽" };

function Point({ mark, left }: { mark: Mark; left: string }) {
  const words = `T0+${span(mark.at)} ${mark.text}`;
  return (
    <Tooltip label={words} multiline maw={360} events={{ hover: true, focus: true, touch: true }}>
      <UnstyledButton className={classes.mark ?? ""} style={{ left }} aria-label={words}>
        {shapes[mark.kind]}
      </UnstyledButton>
    </Tooltip>
  );
}

function InWords({ timeline, t0 }: { timeline: Timeline; t0: string | undefined }) {
  const [open, { toggle }] = useDisclosure(false);
  return (
    <div>
      <UnstyledButton onClick={toggle} aria-expanded={open} td="underline" fz="sm">
        {open ? "Hide the list" : "As a list"}
      </UnstyledButton>
      <Collapse expanded={open}>
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>When</Table.Th>
              <Table.Th>What</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {timeline.list.map((item, i) => (
              <Table.Tr key={i}>
                <Table.Td>{t0 ? <Moment time={new Date(Date.parse(t0) + 1000 * item.at).toISOString()} t0={t0} /> : `T0+${span(item.at)}`}</Table.Td>
                <Table.Td>{item.text}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Collapse>
    </div>
  );
}
