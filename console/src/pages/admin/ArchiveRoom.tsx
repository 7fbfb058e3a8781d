import { Table, Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { fromArchive } from "../../archive/client";
import { binarySize } from "../../components/figures";
import { Meter } from "../../components/capacity/Meter";
import { Refusal } from "../../kubernetes/client";
import { keptFor, usageRoom, volumeRoom, type Usage } from "./usage";
import { Section } from "./Section";

const refetchMilliseconds = 60_000;

/** ArchiveRoom shows how much of the archive each namespace has. */
export function ArchiveRoom({ namespaces }: { namespaces: readonly string[] }) {
  const usages = useQueries({
    queries: namespaces.map((namespace) => ({
      queryKey: ["usage", namespace],
      queryFn: ({ signal }: { signal: AbortSignal }) => fromArchive<Usage>(namespace, `/usage?namespace=${encodeURIComponent(namespace)}`, signal),
      refetchInterval: refetchMilliseconds,
      retry: false,
    })),
  });
  if (namespaces.length === 0) return null;
  return (
    <Section title="Archive" heads={["Namespace", "Runs", "Size", "Of its quota", "A run is kept for"]} minWidth={560}>
      {namespaces.map((namespace, i) => (
        <Table.Tr key={namespace}>
          <Table.Th scope="row" fw={400}>
            {namespace}
          </Table.Th>
          <Cells usage={usages[i]?.data} error={usages[i]?.error} />
        </Table.Tr>
      ))}
    </Section>
  );
}

function Cells({ usage, error }: { usage: Usage | undefined; error: Error | null | undefined }) {
  if (!usage) {
    return (
      <Table.Td colSpan={4}>
        <Text fz="sm">{error ? `not known: ${error instanceof Refusal ? error.message : "no answer"}` : "…"}</Text>
      </Table.Td>
    );
  }
  const room = usageRoom(usage);
  const volume = volumeRoom(usage);
  return (
    <>
      <Table.Td>{usage.runs}</Table.Td>
      <Table.Td>{binarySize(usage.bytes)}</Table.Td>
      <Table.Td miw={200}>
        {room ? <Meter {...room} /> : "no quota"}
        {volume && <Text fz="xs">{volume}</Text>}
      </Table.Td>
      <Table.Td>{keptFor(usage)}</Table.Td>
    </>
  );
}
