import { Badge } from "@mantine/core";
import { palette } from "../theme/palette";

const colours: Record<string, string> = {
  Running: palette.blue,
  Succeeded: palette.green,
  Failed: palette.red,
  Queued: palette.grey,
  Pending: palette.grey,
};

/** PhaseBadge shows the phase of an experiment or campaign as a word; its colour only repeats it. */
export function PhaseBadge({ phase }: { phase: string | undefined }) {
  if (!phase) return null;
  return (
    <Badge variant="outline" color={colours[phase] ?? palette.sky} tt="none" styles={{ label: { color: "var(--mantine-color-text)" } }}>
      {phase}
    </Badge>
  );
}
