import { Button, Group, Skeleton, Stack, Text, Title } from "@mantine/core";
import { Link, useNavigate, useRouterState } from "@tanstack/react-router";
import { useMemo } from "react";
import { useScope } from "../../app/scope";
import { ClusterRoom, TeamRooms } from "../../components/capacity/CapacityView";
import { Trouble } from "../../components/Trouble";
import { useObjectsIn } from "../../kubernetes/hooks";
import { campaigns, experiments } from "../../kubernetes/kinds";
import { arrange, entryOfCampaign, entryOfExperiment, filterOf, searchOf, type Entry, type Filter } from "./entries";
import { EntryList } from "./EntryList";
import { Filters } from "./Filters";
import { NamespacesField } from "./NamespacesField";

/** Home shows what runs, waits and has ended in the namespaces that the user may see, and what is free. */
export function Home() {
  // The search of the route comes later than a key: the caret would jump.
  const filter = filterOf(useRouterState({ select: (state): Record<string, unknown> => state.location.search }));
  const scope = useScope(filter.namespace);
  const found = useObjectsIn(experiments, scope.namespaces);
  const series = useObjectsIn(campaigns, scope.namespaces);
  const entries = useMemo(() => [...(series.objects ?? []).map(entryOfCampaign), ...(found.objects ?? []).map(entryOfExperiment)], [found.objects, series.objects]);
  const navigate = useNavigate();
  const change = (next: Filter) => {
    void navigate({ to: "/", search: searchOf(next), replace: true, resetScroll: false });
  };
  const loading = (!scope.known && !scope.error) || (scope.namespaces?.length !== 0 && !found.objects && !found.error);
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <Title order={1}>Experiments</Title>
        <Button component={Link} to="/new">
          New experiment
        </Button>
      </Group>
      <ClusterRoom />
      {scope.namespaces && scope.known && <NamespacesField scope={scope} />}
      <Trouble error={scope.error} title="It is not known which experiments you may see" />
      <Trouble error={found.error} title="Some experiments could not be read" />
      <Trouble error={series.error} title="Some campaigns could not be read" />
      {loading ? <Skeleton height={320} /> : scope.known && <List entries={entries} isKnown={!found.error && !series.error} filter={filter} onFilter={change} />}
      <TeamRooms />
    </Stack>
  );
}

/** List of entries; isKnown is set if these are all. */
function List({ entries, isKnown, filter, onFilter }: { entries: Entry[]; isKnown: boolean; filter: Filter; onFilter: (filter: Filter) => void }) {
  const shown = useMemo(() => arrange(entries, filter), [entries, filter]);
  if (entries.length === 0) return isKnown && <Text>There are no experiments here yet.</Text>;
  return (
    <Stack gap="xs">
      <Filters entries={entries} shown={shown.length} filter={filter} onChange={onFilter} />
      <EntryList entries={shown} />
    </Stack>
  );
}
