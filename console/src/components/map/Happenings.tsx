import { Table, Text, Title } from "@mantine/core";
import type { Happening } from "./api";
import { describeChange } from "../radiochange";
import { ScrollTable } from "../ScrollTable";
import { span } from "../time";
import { happeningsRemark } from "./words";

/** Happenings say what happened to whom, and what is still to come at the moment that the map shows. */
export function Happenings({ happened, at, live }: { happened: readonly Happening[]; at: number; live: boolean }) {
  const remark = happeningsRemark(happened.length, live);
  return (
    <section aria-label="What happened to whom">
      <Title order={2} size="h3">What happened to whom</Title>
      {remark && <Text size="sm">{remark}</Text>}
      {happened.length > 0 && (
        <ScrollTable label="What happened" minWidth={420}>
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>When</Table.Th>
                <Table.Th>What</Table.Th>
                <Table.Th>Nodes</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {happened.map((one, index) => (
                <Table.Tr key={index}>
                  <Table.Td>
                    T0+{span(one.atSeconds)}
                    {one.atSeconds > at && " (to come)"}
                  </Table.Td>
                  <Table.Td>{one.change ? `${one.what} (${describeChange(one.change)})` : `${one.network}: ${one.what}`}</Table.Td>
                  <Table.Td>{one.nodes?.length ? one.nodes.join(", ") : "all"}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </ScrollTable>
      )}
    </section>
  );
}
