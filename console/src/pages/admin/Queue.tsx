import { Stack, Table, Text, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Age, Moment } from "../../components/Moment";
import type { Queued } from "../../components/capacity/capacity";
import { placeCell } from "../../components/place";
import { Section } from "./Section";

const heads = ["Place", "Experiment", "Priority", "Nodes", "Waits for", "Expected start", "Why"];

/** Queue shows who waits in the whole cluster, in order; rounded is set if places beyond 10 are not exact. */
export function Queue({ queue, rounded }: { queue: readonly Queued[]; rounded: boolean }) {
  if (queue.length === 0) {
    return (
      <Stack gap="xs">
        <Title order={2} size="h4">
          Queue
        </Title>
        <Text size="sm">Nobody waits.</Text>
      </Stack>
    );
  }
  return (
    <Section title="Queue" heads={heads} minWidth={800}>
      {queue.map((waiting) => (
        <Table.Tr key={`${waiting.namespace}/${waiting.name}`}>
          <Table.Td>{waiting.queueName ? `Kueue ${waiting.queueName}` : placeCell(waiting.position, rounded)}</Table.Td>
          <Table.Td>
            <Link to="/ns/$namespace/experiments/$name" params={{ namespace: waiting.namespace, name: waiting.name }}>
              {waiting.namespace}/{waiting.name}
            </Link>
          </Table.Td>
          <Table.Td>{waiting.priority}</Table.Td>
          <Table.Td>{waiting.nodes}</Table.Td>
          <Table.Td>
            <Age time={waiting.since} />
          </Table.Td>
          <Table.Td>{waiting.expectedStart ? <Moment time={waiting.expectedStart} /> : "not known"}</Table.Td>
          <Table.Td>
            {waiting.reason}: {waiting.message}
          </Table.Td>
        </Table.Tr>
      ))}
    </Section>
  );
}
