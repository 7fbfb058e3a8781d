import { Stack, Text, Title } from "@mantine/core";
import { useMemo } from "react";
import { VirtualTable } from "../../components/VirtualTable";
import { burstColumns, burstRows } from "./bursts";
import type { PartProps } from "./part";

/** Bursts shows how long the messages of publishers took that begin when they have connected, by protocols. */
export function Bursts({ results }: PartProps) {
  const bursts = useMemo(() => results.bursts ?? [], [results]);
  const columns = useMemo(() => burstColumns(bursts), [bursts]);
  const rows = useMemo(() => burstRows(bursts), [bursts]);
  return (
    <Stack component="section" gap="xs">
      <Title order={2} size="h3">
        Times of bursts
      </Title>
      <Text size="sm">
        From the start of the publisher, its connecting included, to the arrival of its last message. Where messages are missing, how many came. Of several bursts of the same protocols the mean.
      </Text>
      <VirtualTable label="Times of bursts by protocols" columns={columns} rows={rows} keyOf={({ protocol }) => protocol} empty="No publisher waited for its connection." />
    </Stack>
  );
}
