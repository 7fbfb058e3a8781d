import { Group, List, Popover, Text, UnstyledButton } from "@mantine/core";
import type { RunState } from "../../archive/types";
import { palette } from "../../theme/palette";
import type { Experiment } from "../../types";
import { emulationOf, type EmulationState } from "./verdict";

// A shape says what the colour says.
const signs: Record<EmulationState["kind"], { shape: string; colour: string }> = {
  kept: { shape: "●", colour: palette.green },
  late: { shape: "▲", colour: palette.orange },
  off: { shape: "■", colour: palette.red },
  unknown: { shape: "○", colour: palette.grey },
};

/** Emulation says whether the emulation keeps up; its details open on demand. */
export function Emulation({ experiment, state }: { experiment: Experiment; state: RunState | undefined }) {
  const emulation = emulationOf(experiment, state);
  const { shape, colour } = signs[emulation.kind];
  const line = (
    <Group gap={6} wrap="nowrap">
      <Text span c={colour} aria-hidden>
        {shape}
      </Text>
      <Text span fz="sm">
        {emulation.headline}
      </Text>
    </Group>
  );
  if (emulation.details.length === 0) return line;
  return (
    <Popover position="bottom-start" withArrow width="min(36rem, 90vw)">
      <Popover.Target>
        <UnstyledButton aria-label={`${emulation.headline}. Show more`} td="underline dotted">
          {line}
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown>
        <List size="sm">
          {emulation.details.map((detail, i) => (
            <List.Item key={i}>{detail}</List.Item>
          ))}
        </List>
      </Popover.Dropdown>
    </Popover>
  );
}
