import { SimpleGrid, Skeleton, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Trouble } from "../Trouble";
import { capacityQuery, quotaRoom, requestedText, roomsOf, type Capacity, type Team } from "./capacity";
import { Meter } from "./Meter";

/** ClusterRoom shows what is free in the cluster. */
export function ClusterRoom() {
  const { data, error } = useQuery(capacityQuery());
  if (!data) return error ? <Trouble error={error} title="The capacity of the cluster could not be read" /> : <Skeleton height={44} />;
  if (!data.all) return <NotShown capacity={data} />;
  return (
    <Stack gap={4}>
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="lg" verticalSpacing="xs">
        {roomsOf(data.all).map((room) => (
          <Meter key={room.label} {...room} />
        ))}
      </SimpleGrid>
      {data.keptForWorkflows && (
        <Text size="xs" c="dimmed">
          Of what is free, {requestedText(data.keptForWorkflows)} are kept for workflows of running experiments.
        </Text>
      )}
    </Stack>
  );
}

/** TeamRooms shows what each team uses, and what its quotas leave. */
export function TeamRooms() {
  const { data } = useQuery(capacityQuery());
  if (!data) return null;
  return (
    <Stack gap="xs" component="section" aria-labelledby="teams">
      <Title order={2} size="h4" id="teams">
        Teams
      </Title>
      {data.teams.length === 0 ? <Text size="sm">No team has experiments or quotas.</Text> : <Teams teams={data.teams} />}
      {data.all && <NotShown capacity={data} />}
    </Stack>
  );
}

function Teams({ teams }: { teams: Team[] }) {
  return (
    <Table.ScrollContainer minWidth={560} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
      <Table aria-labelledby="teams" verticalSpacing={6}>
        <Table.Thead>
          <Table.Tr>
            {["Namespace", "Running", "Waiting", "Its pods request", "Quotas"].map((title) => (
              <Table.Th key={title}>{title}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {teams.map((team) => (
            <Table.Tr key={team.namespace}>
              <Table.Th scope="row" fw={400}>
                {team.namespace}
              </Table.Th>
              <Table.Td>{team.running}</Table.Td>
              <Table.Td>{team.queued}</Table.Td>
              <Table.Td>{requestedText(team.requested)}</Table.Td>
              <Table.Td>
                <Quotas team={team} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Quotas({ team }: { team: Team }) {
  if (!team.quotas) return "not shown";
  if (team.quotas.length === 0) return "none";
  return (
    <Stack gap={6}>
      {team.quotas.map((quota) => (
        <Meter key={`${quota.name}/${quota.resource}`} {...quotaRoom(quota)} />
      ))}
    </Stack>
  );
}

function NotShown({ capacity }: { capacity: Capacity }) {
  if (capacity.notShown.length === 0) return null;
  return (
    <Text size="sm" c="dimmed">
      Not shown, because you may not read it: {capacity.notShown.join("; ")}.
    </Text>
  );
}
