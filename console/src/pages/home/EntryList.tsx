import { Box, Group, Progress, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { memo, useMemo } from "react";
import { useNow } from "../../app/clock";
import { Age } from "../../components/Moment";
import { PhaseBadge } from "../../components/PhaseBadge";
import { placeText } from "../../components/place";
import { useRows } from "../../components/rows";
import { span } from "../../components/time";
import { palette } from "../../theme/palette";
import { linesOf, type Entry, type Group as EntryGroup, type Line } from "./entries";
import classes from "./home.module.css";

const titles: Record<EntryGroup, string> = { running: "Running", waiting: "Waiting", finished: "Finished" };
const heads = ["Name", "Namespace", "Phase", "Nodes", "What happens", "Delivered", "Median delay", "Emulation", "For"];

/** EntryList is the table of experiments and campaigns. Only rows in view are drawn. */
export function EntryList({ entries }: { entries: readonly Entry[] }) {
  const narrow = useMediaQuery("(max-width: 48em)");
  const lines = useMemo(() => linesOf(entries), [entries]);
  // Heights of rows are measured once, so another width is another list.
  return <Lines key={String(narrow)} lines={lines} rowHeight={narrow ? 76 : 40} />;
}

function Lines({ lines, rowHeight }: { lines: readonly Line[]; rowHeight: number }) {
  const { scroller, items, height } = useRows(lines.length, rowHeight);
  return (
    <Box ref={scroller} className={classes.scroller ?? ""} tabIndex={0} role="table" aria-label="Experiments and campaigns" aria-rowcount={lines.length + 1}>
      <Box role="rowgroup" className={classes.heads ?? ""}>
        <Box role="row" aria-rowindex={1} className={classes.row ?? ""}>
          {heads.map((title) => (
            <Text key={title} role="columnheader" fw={600} fz="sm">
              {title}
            </Text>
          ))}
        </Box>
      </Box>
      <Box role="rowgroup" pos="relative" h={height} className={classes.body ?? ""}>
        {items.map((item) => {
          const line = lines[item.index];
          if (!line) return null;
          const place = { top: item.start, height: rowHeight, index: item.index + 2 };
          return "heading" in line ? <Heading key={line.heading} line={line} {...place} /> : <Row key={line.entry.key} entry={line.entry} {...place} />;
        })}
      </Box>
    </Box>
  );
}

interface Place {
  top: number;
  height: number;
  index: number;
}

function Heading({ line, top, height, index }: Place & { line: Extract<Line, { heading: EntryGroup }> }) {
  return (
    <Box role="row" aria-rowindex={index} className={classes.placed ?? ""} style={{ transform: `translateY(${top}px)`, height }}>
      <Text role="rowheader" aria-colspan={heads.length} fw={700} className={classes.heading ?? ""}>
        {titles[line.heading]} ({line.count})
      </Text>
    </Box>
  );
}

// Rows that stay in view are not drawn again while the list scrolls.
const Row = memo(function Row({ entry, top, height, index }: Place & { entry: Entry }) {
  return (
    <Box role="row" aria-rowindex={index} className={`${classes.row ?? ""} ${classes.placed ?? ""}`} style={{ transform: `translateY(${top}px)`, height }}>
      <Box role="cell" className={classes.name ?? ""}>
        <Name entry={entry} />
      </Box>
      <Cell text={entry.namespace} part="namespace" />
      <Box role="cell" className={classes.phase ?? ""}>
        <PhaseBadge phase={entry.phase} />
      </Box>
      <Cell text={entry.kind === "campaign" && entry.count ? `${entry.count} runs` : entry.count} part="count" />
      <Box role="cell" className={classes.note ?? ""}>
        <Note entry={entry} />
      </Box>
      <Cell text={entry.delivered && `${entry.delivered} %`} part="delivered" />
      <Cell text={entry.medianDelay} part="delay" />
      <Box role="cell" className={classes.kept ?? ""}>
        <KeptUp entry={entry} />
      </Box>
      <Box role="cell" fz="sm" className={classes.since ?? ""}>
        <Age time={entry.since} />
      </Box>
    </Box>
  );
});

function Cell({ text, part }: { text: string; part: string }) {
  return (
    <Text role="cell" fz="sm" className={`${classes.cell ?? ""} ${classes[part] ?? ""}`} title={text}>
      {text}
    </Text>
  );
}

function Name({ entry }: { entry: Entry }) {
  const { namespace, name, uid } = entry;
  if (entry.kind === "campaign") {
    return (
      <Link to="/ns/$namespace/campaigns/$name" params={{ namespace, name }} title={`Campaign ${name}`}>
        {name}
        <Text span fz="sm">
          {" "}
          (campaign)
        </Text>
      </Link>
    );
  }
  if (entry.recorded) {
    return (
      <Link to="/ns/$namespace/runs/$uid" params={{ namespace, uid }} title={`Results of ${name}`}>
        {name}
      </Link>
    );
  }
  return (
    <Link to="/ns/$namespace/experiments/$name" params={{ namespace, name }} title={name}>
      {name}
    </Link>
  );
}

function Note({ entry }: { entry: Entry }) {
  return (
    <Group gap="xs" wrap="nowrap">
      {entry.progress !== undefined && entry.group === "running" && <Progress value={entry.progress} w={60} miw={60} aria-label={`Progress of ${entry.name}`} />}
      <Text fz="sm" truncate title={entry.note}>
        {entry.group === "waiting" && entry.kind === "experiment" && <Waiting entry={entry} />}
        {entry.note}
      </Text>
    </Group>
  );
}

function Waiting({ entry }: { entry: Entry }) {
  const now = useNow();
  const start = entry.expectedStart ? `, starts in about ${span(Math.max(0, (Date.parse(entry.expectedStart) - now) / 1000))}` : "";
  return (
    <Text span fw={600} fz="sm">
      {placeText(entry.place)}
      {start}:{" "}
    </Text>
  );
}

function KeptUp({ entry }: { entry: Entry }) {
  if (entry.keptUp === undefined) return null;
  const title = entry.offBy ? `The figures are off by at most ${entry.offBy}` : "";
  return (
    <Text fz="sm" truncate title={title}>
      <Text span aria-hidden c={entry.keptUp ? palette.green : palette.red}>
        {entry.keptUp ? "●" : "■"}{" "}
      </Text>
      {entry.keptUp ? "kept up" : "did not keep up"}
    </Text>
  );
}
