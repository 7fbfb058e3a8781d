import { Box, Code, Group, Stack, Switch, Text } from "@mantine/core";
import { useEffect, useState, type ReactNode } from "react";
import { useRows } from "../../components/rows";
import { fromT0, utc } from "../../components/time";
import classes from "./lines.module.css";

/** One line of a list that is drawn. */
export interface ListedLine {
  key: string | number;
  /** milliseconds of its time, Unix epoch. */
  milliseconds: number | undefined;
  text: string;
  /** mark before the text, such as of a warning. */
  mark?: string;
  /** details are shown when the line is chosen. */
  details?: ReactNode;
}

interface LineListProps {
  label: string;
  lines: ListedLine[];
  t0: string | undefined;
  note?: string;
  /** begins is set to show the first lines, until the user follows the newest. */
  begins?: boolean;
}

const rowHeight = 24;

/** LineList shows very many lines, of which it draws those in view, and follows the newest. */
export function LineList({ label, lines, t0, note, begins = false }: LineListProps) {
  const { scroller, items, height, scrollTo } = useRows(lines.length, rowHeight);
  const [follows, setFollows] = useState(!begins);
  const [chosen, setChosen] = useState<string | number>();
  const last = lines.length - 1;
  useEffect(() => {
    if (follows && last >= 0) scrollTo(last);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- scrollTo is another function each time
  }, [follows, last]);
  const start = t0 ? new Date(t0) : undefined;
  const shown = lines.find((line) => line.key === chosen);
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Switch
          label="Follow"
          checked={follows}
          onChange={(event) => {
            setFollows(event.currentTarget.checked);
          }}
        />
        <Text size="sm" c="dimmed" role="status">
          {lines.length === 1 ? "1 line" : `${lines.length} lines`}{note ? `, ${note}` : ""}
        </Text>
      </Group>
      <Box
        ref={scroller}
        className={classes.scroller ?? ""}
        tabIndex={0}
        role="group"
        aria-label={label}
        onKeyDown={(event) => {
          if (["ArrowUp", "PageUp", "Home"].includes(event.key)) setFollows(false);
        }}
        onWheel={(event) => {
          if (event.deltaY < 0) setFollows(false);
        }}
        onPointerDown={(event) => {
          if (event.target === event.currentTarget) setFollows(false); // the scrollbar
        }}
        onTouchMove={() => {
          setFollows(false);
        }}
      >
        <Box pos="relative" h={height} className={classes.body ?? ""}>
          {items.map((item) => {
            const line = lines[item.index];
            return (
              line && (
                <button
                  key={line.key}
                  type="button"
                  className={classes.line ?? ""}
                  aria-pressed={line.key === chosen}
                  style={{ transform: `translateY(${item.start}px)`, height: rowHeight }}
                  onClick={() => {
                    setChosen(line.key === chosen ? undefined : line.key);
                  }}
                >
                  <time className={classes.time ?? ""}>{line.milliseconds === undefined ? "" : momentOf(line.milliseconds, start)}</time>
                  <span className={classes.text ?? ""}>
                    {line.mark ?? ""}
                    {line.text}
                  </span>
                </button>
              )
            );
          })}
        </Box>
      </Box>
      {shown && (
        <Box>
          {shown.milliseconds !== undefined && <Text size="sm">{`${utc(new Date(shown.milliseconds))}${start ? ` (${fromT0(new Date(shown.milliseconds), start)})` : ""}`}</Text>}
          {shown.details ?? <Code block>{shown.text}</Code>}
        </Box>
      )}
    </Stack>
  );
}

function momentOf(milliseconds: number, start: Date | undefined): string {
  const time = new Date(milliseconds);
  return `${time.toISOString().slice(11, 23)}Z${start ? ` ${fromT0(time, start)}` : ""}`;
}
