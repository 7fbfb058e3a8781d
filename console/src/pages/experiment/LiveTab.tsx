import { Progress, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import type { LiveNetwork } from "../../archive/types";
import { Chart, type Curve } from "../../components/Chart";
import { atMostThreeDigits, bytes, bytesPerSecond, count, duration, percent } from "../../components/figures";
import { ScrollTable } from "../../components/ScrollTable";
import { Trouble } from "../../components/Trouble";
import { useNodeFigures, type NodeFigures } from "./metrics";
import { networksOf, samplesOf, type Sample } from "./samples";
import { isOver } from "./state";
import type { TabProps } from "./tab";

/** LiveTab has the figures of the run so far, as curves since the page was opened. */
export default function LiveTab({ experiment: e, state }: TabProps) {
  const store = samplesOf(e.metadata.uid ?? "");
  const samples = useSyncExternalStore(store.subscribe, store.snapshot);
  const nodes = useNodeFigures(e);
  if (!e.status?.t0) return <Text>Figures begin at T0.</Text>;
  if (isOver(e) && samples.length === 0) return <Text>The run has ended: its results have the figures.</Text>;
  const t0 = Date.parse(e.status.t0) / 1000;
  const counters = state?.counters;
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        Delivered share and delays are of the run so far; curves begin when the page was opened.
        {counters && ` ${count(counters.sent)} messages sent, ${count(counters.received)} received.`}
        {state?.live?.deepestFrames ? ` Deepest queue: ${count(state.live.deepestFrames)} frames at ${state.live.deepestQueue ?? ""}.` : ""}
      </Text>
      <Curves samples={samples} t0={t0} />
      <Networks networks={state?.live?.networks ?? []} />
      <Trouble error={nodes.error} title="Figures of nodes could not be read" />
      {nodes.data && <Volume figures={nodes.data} at={nodes.data.at} t0={t0} />}
      {nodes.data && <Receivers receivers={nodes.data.receivers} />}
    </Stack>
  );
}

const share = (value: number) => percent(value);
const perSecond = (value: number) => `${atMostThreeDigits(value)}/s`;
const whole: [number, number] = [0, 100];

function Curves({ samples, t0 }: { samples: readonly Sample[]; t0: number }) {
  const times = samples.map((s) => s.at);
  const curve = (label: string, value: (s: Sample) => number | null): Curve => ({ label, values: samples.map(value) });
  const networks = networksOf(samples);
  const common = { times, t0 };
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Panel title="Delivered share so far">
        <Chart {...common} title="Delivered share" curves={[curve("Delivered", (s) => s.deliveredPercent)]} written={share} range={whole} />
      </Panel>
      <Panel title="Delays so far">
        <Chart {...common} title="Delays" curves={[curve("Median", (s) => s.median), curve("95th percentile", (s) => s.p95)]} written={duration} />
      </Panel>
      <Panel title="Messages a second">
        <Chart {...common} title="Messages a second" curves={[curve("Sent", (s) => s.sentPerSecond), curve("Received", (s) => s.receivedPerSecond)]} written={perSecond} />
      </Panel>
      <Panel title="Frames in queues">
        <Chart {...common} title="Frames in queues" curves={[curve("Waiting", (s) => s.queue)]} written={atMostThreeDigits} />
      </Panel>
      {networks.length > 0 && (
        <Panel title="Volume sent on each network">
          <Chart {...common} title="Volume" curves={networks.map((name) => curve(name, (s) => s.volume[name] ?? null))} written={bytesPerSecond} />
        </Panel>
      )}
    </SimpleGrid>
  );
}

/** Networks has what radios have carried so far, in words and figures. */
function Networks({ networks }: { networks: readonly LiveNetwork[] }) {
  if (networks.length === 0) return null;
  return (
    <ScrollTable label="Volume by network" minWidth={360} maxHeight={320}>
      <Table verticalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Network</Table.Th>
            <Table.Th ta="right">Frames sent</Table.Th>
            <Table.Th ta="right">Sent</Table.Th>
            <Table.Th ta="right">Received, summed over receivers</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {networks.map((network) => (
            <Table.Tr key={network.name}>
              <Table.Th scope="row">{network.name}</Table.Th>
              <Table.Td ta="right">{count(network.framesSent)}</Table.Td>
              <Table.Td ta="right">{bytes(network.bytesSent)}</Table.Td>
              <Table.Td ta="right">{bytes(network.bytesReceived)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollTable>
  );
}

function Panel({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <Stack gap={4} miw={0}>
      <Title order={2} size="h5">
        {title}
      </Title>
      {children}
    </Stack>
  );
}

// An hour, at one reading each 10 s.
const keptReadings = 360;

function Volume({ figures, at, t0 }: { figures: NodeFigures; at: number; t0: number }) {
  const before = useRef<{ at: number; contentBytes: number }>(undefined);
  const [rates, setRates] = useState<{ at: number; rate: number }[]>([]);
  useEffect(() => {
    const last = before.current;
    before.current = { at, contentBytes: figures.contentBytes };
    if (!last || at <= last.at) return;
    const rate = Math.max(0, figures.contentBytes - last.contentBytes) / (at - last.at);
    setRates((old) => [...old, { at, rate }].slice(-keptReadings));
  }, [at, figures.contentBytes]);
  return (
    <Panel title={`Content sent by apps: ${bytes(figures.contentBytes)}`}>
      <Chart title="Content a second" times={rates.map((r) => r.at)} curves={[{ label: "Content", values: rates.map((r) => r.rate) }]} written={bytesPerSecond} t0={t0} height={150} />
    </Panel>
  );
}

const shownReceivers = 20;

function Receivers({ receivers }: Pick<NodeFigures, "receivers">) {
  if (receivers.length === 0) return null;
  return (
    <Panel title="Delivered share by receiver, the least first">
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Node</Table.Th>
            <Table.Th>Received</Table.Th>
            <Table.Th w="50%">Share</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {receivers.slice(0, shownReceivers).map(({ node, offered, received }) => (
            <Table.Tr key={node}>
              <Table.Td>{node}</Table.Td>
              <Table.Td>
                {count(received)} of {count(offered)}
              </Table.Td>
              <Table.Td>
                {offered === 0 ? "–" : percent((100 * received) / offered)}
                <Progress value={offered === 0 ? 0 : (100 * received) / offered} size="sm" aria-hidden />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {receivers.length > shownReceivers && <Text size="sm">and {receivers.length - shownReceivers} more</Text>}
    </Panel>
  );
}
