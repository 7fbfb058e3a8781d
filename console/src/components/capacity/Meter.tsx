import { Group, Progress, Stack, Text } from "@mantine/core";
import type { Room } from "./capacity";

/** Meter shows how much of something is used, as a bar and in words. */
export function Meter({ label, percent, text }: Room) {
  return (
    <Stack gap={2} miw={0}>
      <Group justify="space-between" gap="xs" wrap="nowrap">
        <Text size="sm" fw={600} truncate>
          {label}
        </Text>
        <Text size="sm">{text}</Text>
      </Group>
      <Progress value={percent} aria-label={`${label}: used`} />
    </Stack>
  );
}
