import { Stack, Table, Text } from "@mantine/core";
import { useSession } from "../../app/session";
import { roomsOf, type Host } from "../../components/capacity/capacity";
import { Meter } from "../../components/capacity/Meter";
import { Trouble } from "../../components/Trouble";
import { useObjects } from "../../kubernetes/hooks";
import { pods } from "../../kubernetes/kinds";
import { hostRows, kubernetesNodes, platformPods, type HostRow } from "./hosts";
import { Section } from "./Section";
import { knownText, useLateness } from "./useLateness";

/** Hosts shows each machine of the cluster: its room, its radiod, and how late the emulation is on it. */
export function Hosts({ capacity }: { capacity: readonly Host[] }) {
  const platform = useSession().data?.platformNamespace ?? "vignette-system";
  const hosts = useObjects(kubernetesNodes);
  const own = useObjects(pods, { namespace: platform, labelSelector: platformPods });
  const nodes = useObjects(pods, { labelSelector: "vignette.dev/experiment-uid" });
  const lateness = useLateness(nodes.objects ?? []);
  const rows = hostRows(hosts.objects ?? [], own.objects ?? [], nodes.objects, capacity, lateness.runs);
  return (
    <Stack gap="xs">
      <Section title="Hosts" heads={["Host", "State", "radiod", "Nodes", "Emulation", "Room", "Versions"]} minWidth={960}>
        {rows.map((row) => (
          <Row key={row.name} row={row} />
        ))}
      </Section>
      <Text size="sm">{knownText(lateness.runs.length, lateness.running)}</Text>
      <Trouble error={hosts.error ?? own.error ?? nodes.error ?? lateness.error} title="Some of this could not be read" />
    </Stack>
  );
}

function Row({ row }: { row: HostRow }) {
  return (
    <Table.Tr>
      <Table.Th scope="row" fw={400}>
        {row.name}
      </Table.Th>
      <Table.Td>
        <Marked bad={row.isBad} text={row.state} />
      </Table.Td>
      <Table.Td>
        <Marked bad={row.radiodIsBad} text={row.radiod} />
      </Table.Td>
      <Table.Td>{row.nodes ?? "–"}</Table.Td>
      <Table.Td>{row.lateness}</Table.Td>
      <Table.Td miw={260}>{row.capacity && roomsOf(row.capacity).map((room) => <Meter key={room.label} {...room} />)}</Table.Td>
      <Table.Td>{row.versions}</Table.Td>
    </Table.Tr>
  );
}

function Marked({ bad, text }: { bad: boolean; text: string }) {
  return (
    <Text fz="sm" {...(bad && { fw: 700 })}>
      {bad ? `✗ ${text}` : text}
    </Text>
  );
}
