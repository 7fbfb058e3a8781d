import { Text } from "@mantine/core";
import type { Source } from "../start/source";
import { useNormal } from "../hooks";
import { about, linesBetween } from "./diff";
import classes from "./Difference.module.css";

/** Difference shows the lines of the spec, with all defaults and in one order, that are not those of the source. */
export function Difference({ source, after }: { source: Source; after: string | undefined }) {
  const before = useNormal(source.text);
  if (before === undefined || after === undefined) return <Text c="dimmed">It is shown when both have no errors.</Text>;
  const lines = about(linesBetween(before, after));
  if (before === after) return <Text>None.</Text>;
  return (
    <pre className={classes.difference} tabIndex={0} aria-label="Difference from the source">
      {lines.map((line, place) => (
        <span key={place} className={line?.sign === "+" ? classes.more : line?.sign === "-" ? classes.less : undefined}>
          {line ? `${line.sign} ${line.text}\n` : "…\n"}
        </span>
      ))}
    </pre>
  );
}
