import { Code, List, Stack, Table, Text, Title } from "@mantine/core";
import { stringify } from "yaml";
import type { Host, Image, Plan, Rerun } from "../../archive/types";
import { bytes, digits, duration, percent } from "../../components/figures";
import { TableSection } from "../../components/TableSection";
import type { Column } from "../../components/VirtualTable";
import type { PartProps } from "./part";

/** Surroundings shows what was run, on which hosts, by which versions. */
export function Surroundings({ state: { plan }, results }: PartProps) {
  const { environment } = plan;
  return (
    <Stack>
      <Versions plan={plan} />
      <Origin rerun={plan.rerunOf} words="This run repeats" />
      <Origin rerun={plan.basedOn} words="This run was changed from" />
      <TableSection title="Hosts" columns={hostColumns} rows={environment?.hosts ?? []} keyOf={({ name }) => name} empty="The record names no hosts." />
      {results.hosts && (
        <TableSection title="How busy hosts were" columns={loadColumns} rows={results.hosts} keyOf={({ name }) => name} />
      )}
      <TableSection title="Images" columns={imageColumns} rows={environment?.images ?? []} keyOf={({ node, host, container }) => `${node ?? ""}/${host ?? ""}/${container}`} empty="The record names no images." />
      <details>
        <summary>Specification as resolved, and waveforms</summary>
        <Code block>{stringify({ spec: plan.spec, ...(plan.waveforms && { waveforms: plan.waveforms }) })}</Code>
      </details>
    </Stack>
  );
}

function Versions({ plan: { environment, spec, scenario } }: { plan: Plan }) {
  const rows: [string, string | undefined][] = [
    ["Platform", environment?.platform.version],
    ["Chart", environment?.platform.chart],
    ["Operator's revision", environment?.platform.operator],
    ["Kubernetes", environment?.kubernetes],
    ["Seed", spec.seed === undefined ? undefined : JSON.stringify(spec.seed)],
    ["Scenario", scenario && `${scenario.name}, ${scenario.digest}`],
  ];
  return (
    <section>
      <Title order={2} size="h3">
        Versions
      </Title>
      <Table w="auto">
        <Table.Tbody>
          {rows
            .filter(([, value]) => value)
            .map(([name, value]) => (
              <Table.Tr key={name}>
                <Table.Th scope="row">{name}</Table.Th>
                <Table.Td>{value}</Table.Td>
              </Table.Tr>
            ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}

function Origin({ rerun, words }: { rerun: Rerun | undefined; words: string }) {
  if (!rerun) return null;
  return (
    <section>
      <Text>
        {words} {rerun.name ?? "a run"} <Code>{rerun.uid}</Code>.
      </Text>
      <List size="sm">
        {rerun.changes?.map(({ path, from, to }) => (
          <List.Item key={path}>
            {path}: {from || "absent"} became {to || "absent"}
          </List.Item>
        ))}
        {rerun.differences?.map(({ what, before, now }) => (
          <List.Item key={what}>
            {what}: {before || "absent"} before, {now || "absent"} now
          </List.Item>
        ))}
      </List>
    </section>
  );
}

const hostColumns: Column<Host>[] = [
  { id: "name", head: "Host", value: ({ name }) => name },
  { id: "nodes", head: "Nodes", numeric: true, value: ({ nodes }) => nodes?.length ?? 0 },
  { id: "kernel", head: "Kernel", value: ({ kernel }) => kernel },
  { id: "os", head: "Operating system", value: ({ os }) => os },
  { id: "cpu", head: "Processors", value: ({ cpus, cpuModel }) => `${cpus ?? "?"} × ${cpuModel ?? "unknown"}` },
  { id: "memory", head: "Memory", numeric: true, value: ({ memoryBytes }) => memoryBytes, show: ({ memoryBytes }) => bytes(memoryBytes) },
  { id: "tcp", head: "TCP congestion control", value: ({ tcpCongestionControl }) => tcpCongestionControl },
  { id: "kubelet", head: "Kubelet", value: ({ kubelet }) => kubelet },
  { id: "runtime", head: "Container runtime", value: ({ containerRuntime }) => containerRuntime },
];

type Load = NonNullable<PartProps["results"]["hosts"]>[number];

const loadColumns: Column<Load>[] = [
  { id: "name", head: "Host", value: ({ name }) => name },
  { id: "busy", head: "Busy on average", numeric: true, value: ({ busyPercent }) => busyPercent, show: ({ busyPercent }) => percent(busyPercent) },
  { id: "most", head: "In the busiest second", numeric: true, value: ({ maxBusyPercent }) => maxBusyPercent, show: ({ maxBusyPercent }) => percent(maxBusyPercent) },
  { id: "load", head: "Greatest load average", numeric: true, value: ({ maxLoadAverage }) => maxLoadAverage, show: ({ maxLoadAverage }) => digits(maxLoadAverage) },
  { id: "stolen", head: "Taken by a hypervisor", numeric: true, value: ({ stolenSeconds }) => stolenSeconds, show: ({ stolenSeconds }) => duration(stolenSeconds) },
];

const imageColumns: Column<Image>[] = [
  { id: "of", head: "Of", value: ({ node, host }) => node ?? (host ? `platform on ${host}` : "platform") },
  { id: "container", head: "Container", value: ({ container }) => container },
  { id: "image", head: "Image", value: ({ image }) => image },
  { id: "id", head: "Digest", value: ({ id }) => id },
];
