import { Box, List, Loader, Stack, Switch, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { layOut } from "../../components/topology/elk";
import { topologyOf, type Topology } from "../../components/topology/graph";
import { TopologyView } from "../../components/topology/TopologyView";
import { Trouble } from "../../components/Trouble";
import type { TabProps } from "./tab";

/** TopologyTab draws groups, nodes and networks, and the ways of messages. */
export default function TopologyTab({ experiment: e, state }: TabProps) {
  const [clients, setClients] = useState(false);
  const key = `${e.metadata.uid ?? ""} ${e.metadata.generation ?? 0}`;
  const planned = (state?.plan.nodes ?? []).length > 0;
  // The plan comes again with every poll, and its nodes stay the same.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const topology = useMemo(() => topologyOf(e.spec, state?.plan), [key, planned]);
  const { data, error } = useQuery({ queryKey: ["layout", key, planned], queryFn: () => layOut(topology), staleTime: Infinity });
  const hasClients = topology.passages.some((passage) => passage.kind === "client");
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        ◆ runs a broker. Dashed: messages pass from broker to broker.
      </Text>
      {hasClients && (
        <Switch
          label="Show which broker each app uses"
          checked={clients}
          onChange={(event) => {
            setClients(event.currentTarget.checked);
          }}
        />
      )}
      <Trouble error={error} title="The topology could not be laid out" />
      {!data && !error && <Loader aria-label="The topology is being laid out" />}
      {data && (
        <Box h="min(60vh, 44rem)" bd="1px solid var(--mantine-color-default-border)">
          <TopologyView topology={topology} layout={data} showsClients={clients} />
        </Box>
      )}
      <InWords topology={topology} />
    </Stack>
  );
}

function InWords({ topology }: { topology: Topology }) {
  const brokers = topology.passages.filter((passage) => passage.kind === "broker");
  return (
    <Box>
      <Title order={2} size="h4">
        Networks
      </Title>
      <List size="sm">
        {topology.networks.map((network) => {
          const groups = topology.attachments.filter((a) => a.network === network.name);
          const members = groups.map((a) => (a.members < a.of ? `${a.members} of ${a.of} of ${a.group}` : `${a.group}${a.of > 1 ? ` (${a.of} nodes)` : ""}`));
          return (
            <List.Item key={network.name}>
              {network.name} ({[network.model, network.subnet].filter(Boolean).join(", ")}): {members.join(", ") || "nobody"}
            </List.Item>
          );
        })}
        {brokers.length > 0 && <List.Item>Messages pass from broker to broker: {brokers.map((b) => `${b.from} to ${b.to}`).join(", ")}</List.Item>}
      </List>
    </Box>
  );
}
