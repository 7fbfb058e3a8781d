import { Stack, Table, Text } from "@mantine/core";
import { span } from "../../components/time";
import { Curve } from "./Curve";
import { hopsAt, sharesOf, totalOf, type Preview } from "./preview";

/** Hops say how far the platforms are from each other, now and over the whole scenario. */
export function Hops({ preview, at }: { preview: Preview; at: number }) {
  const now = hopsAt(preview.hops, at);
  if (!now) return <Text size="sm">Without propagation there is no pathloss, and so no hops.</Text>;
  const shares = sharesOf(now);
  const total = sharesOf(totalOf(preview.hops));
  return (
    <Stack gap="sm">
      <Table aria-label="Pairs of platforms by hops" verticalSpacing={2} withRowBorders={false}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Pairs by hops</Table.Th>
            <Table.Th ta="right">at {span(now.atSeconds)}</Table.Th>
            <Table.Th ta="right">all the time</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {shares.map(({ label, percent }, index) => (
            <Table.Tr key={label}>
              <Table.Td>{label}</Table.Td>
              <Table.Td ta="right">{percent.toFixed(1)} %</Table.Td>
              <Table.Td ta="right">{(total[index]?.percent ?? 0).toFixed(1)} %</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Text size="sm">
        {now.parts === 1 ? "All platforms are connected." : `The platforms are in ${now.parts} parts without a way between them.`}
      </Text>
      {preview.durationSeconds > 0 && <Curve title="Mean hops" unit="hops" at={at} points={preview.hops.map(({ atSeconds, mean }) => ({ at: atSeconds, value: mean }))} />}
    </Stack>
  );
}
