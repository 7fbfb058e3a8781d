import { List, Stack, Table, Text, Title } from "@mantine/core";
import { count as figure, percent } from "../../components/figures";
import { Moment } from "../../components/Moment";
import { ScrollTable } from "../../components/ScrollTable";
import type { TabProps } from "./tab";
import { TimelineView } from "./TimelineView";

/** OverviewTab has the timeline, what arrived so far, incidents and conditions. */
export default function OverviewTab({ experiment, state }: TabProps) {
  return (
    <Stack gap="lg">
      <TimelineView experiment={experiment} state={state} />
      <Headline experiment={experiment} state={state} />
      <Incidents experiment={experiment} state={state} />
      <Conditions experiment={experiment} state={state} />
    </Stack>
  );
}

function Headline({ experiment, state }: TabProps) {
  const results = experiment.status?.results;
  const live = state?.live;
  if (results) {
    return (
      <Text>
        {results.deliveredPercent ?? "–"} % of {figure(results.offered ?? results.expected)} deliveries arrived
        {results.medianDelay ? `, half of them within ${results.medianDelay}` : ""}.
        {results.gaps > 0 ? ` Gaps: ${figure(results.gaps)}.` : ""}
        {(results.warnings ?? 0) > 0 ? ` Warnings: ${figure(results.warnings ?? 0)}.` : ""}
      </Text>
    );
  }
  if (!live) return null;
  return (
    <Text>
      {figure(live.received)} of {figure(live.offered)} deliveries arrived so far
      {live.offered > 0 ? ` (${percent((100 * live.received) / live.offered)})` : ""}.
    </Text>
  );
}

function Incidents({ experiment, state }: TabProps) {
  const incidents = state?.incidents ?? [];
  const refused = [...new Set((state?.agents ?? []).filter((agent) => agent.phase === "failed").map((agent) => agent.node))];
  if (incidents.length === 0 && refused.length === 0) return null;
  const t0 = experiment.status?.t0;
  const moment = (seconds: number) => (t0 ? <Moment time={new Date(Date.parse(t0) + 1000 * seconds).toISOString()} t0={t0} /> : null);
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        Incidents
      </Title>
      <List>
        {incidents.map((incident, i) => (
          <List.Item key={i}>
            {moment(incident.fromSeconds)} {incident.node ? `${incident.node}: ` : ""}
            {incident.what}: {incident.reason}
          </List.Item>
        ))}
        {refused.length > 0 && <List.Item>Failed agents on {refused.join(", ")}: see Nodes.</List.Item>}
      </List>
    </Stack>
  );
}

function Conditions({ experiment }: TabProps) {
  const conditions = experiment.status?.conditions ?? [];
  if (conditions.length === 0) return null;
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        Conditions
      </Title>
      <ScrollTable label="Conditions" minWidth={480}>
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Condition</Table.Th>
              <Table.Th>Status</Table.Th>
              <Table.Th>Reason</Table.Th>
              <Table.Th>Message</Table.Th>
              <Table.Th>Since</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {conditions.map((condition) => (
              <Table.Tr key={condition.type}>
                <Table.Td>{condition.type}</Table.Td>
                <Table.Td>{condition.status}</Table.Td>
                <Table.Td>{condition.reason}</Table.Td>
                <Table.Td>{condition.message}</Table.Td>
                <Table.Td>
                  <Moment time={condition.lastTransitionTime} t0={experiment.status?.t0} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollTable>
    </Stack>
  );
}
