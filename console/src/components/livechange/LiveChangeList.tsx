import { Table, Text, Title } from "@mantine/core";
import { useObjects } from "../../kubernetes/hooks";
import { liveChanges } from "../../kubernetes/kinds";
import type { LiveChange } from "../../types";
import { Moment } from "../Moment";
import { describeChange } from "../radiochange";
import { ScrollTable } from "../ScrollTable";
import { Trouble } from "../Trouble";

/** stateOf a change in words: since when it holds, or why it does not. */
export function stateOf({ status }: LiveChange): string {
  const applied = status?.conditions?.find(({ type }) => type === "Applied");
  if (!applied) return "not seen by the operator yet";
  if (applied.status === "True") return "applied";
  return [applied.reason === "WaitingForStart" ? "waits for T0" : "not applied", applied.message].filter(Boolean).join(": ");
}

/** LiveChangeList shows the changes of an experiment that were made by hand. */
export function LiveChangeList({ namespace, experiment, t0 }: { namespace: string; experiment: string; t0: string | undefined }) {
  const { objects, error } = useObjects(liveChanges, { namespace });
  const own = (objects ?? []).filter(({ spec }) => spec.experiment === experiment);
  own.sort((a, b) => (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? ""));
  return (
    <section aria-label="Changes by hand">
      <Title order={2} size="h3">Changes by hand</Title>
      <Trouble error={error} />
      {objects && own.length === 0 && <Text size="sm">Nothing was changed by hand.</Text>}
      {own.length > 0 && (
        <ScrollTable label="Changes" minWidth={480}>
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Holds from</Table.Th>
                <Table.Th>Change</Table.Th>
                <Table.Th>State</Table.Th>
                <Table.Th>Object</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {own.map((change) => (
                <Table.Tr key={change.metadata.uid ?? change.metadata.name}>
                  <Table.Td>
                    <Moment time={change.status?.appliesAt} t0={t0} />
                  </Table.Td>
                  <Table.Td>{change.spec.changes.map(describeChange).join("; ")}</Table.Td>
                  <Table.Td>{stateOf(change)}</Table.Td>
                  <Table.Td>{change.metadata.name}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </ScrollTable>
      )}
    </section>
  );
}
