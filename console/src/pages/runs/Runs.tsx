import { Skeleton, Stack, Text, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useNavigate, useRouterState } from "@tanstack/react-router";
import { useMemo } from "react";
import { toReadArchives, useScope } from "../../app/scope";
import { askAgainAfter } from "../../archive/polling";
import { runsQuery } from "../../archive/runs";
import { Trouble } from "../../components/Trouble";
import { useObjectsIn } from "../../kubernetes/hooks";
import { experiments } from "../../kubernetes/kinds";
import { filterOf, searchOf, type Filter } from "../home/entries";
import { Filters } from "../home/Filters";
import { NamespacesField } from "../home/NamespacesField";
import { archivedRuns, chosenRuns, type ArchivedRun } from "./archived";
import { Damaged } from "./Damaged";
import { RunTable } from "./RunTable";

const refetchMilliseconds = 30_000;

/** Runs shows what the archive keeps in the namespaces that the user may read, also of deleted experiments. */
export function Runs() {
  // The search of the route comes later than a key: the caret would jump.
  const filter = filterOf(useRouterState({ select: (state): Record<string, unknown> => state.location.search }));
  const scope = useScope(filter.namespace, toReadArchives);
  const asked: readonly (string | undefined)[] = scope.known ? (scope.namespaces ?? [undefined]) : [];
  const lists = useQueries({
    queries: asked.map((namespace) => ({ ...runsQuery(namespace), refetchInterval: ({ state }: { state: { error: Error | null } }) => askAgainAfter(state.error, refetchMilliseconds) })),
    combine: (answers) => ({ data: answers.map(({ data }) => data), errors: answers.map(({ error }) => error) }),
  });
  const runs = useMemo(() => archivedRuns(lists.data.map((list) => list ?? [])), [lists.data]);
  const navigate = useNavigate();
  const change = (next: Filter) => {
    void navigate({ to: "/runs", search: searchOf(next), replace: true, resetScroll: false });
  };
  const loading = (!scope.known && !scope.error) || lists.data.some((list, i) => !list && !lists.errors[i]);
  return (
    <Stack gap="md">
      <Title order={1}>Archived runs</Title>
      {scope.namespaces && scope.known && <NamespacesField scope={scope} title="You may not read the archived runs of all namespaces" />}
      <Trouble error={scope.error} title="It is not known which archived runs you may read" />
      {asked.map((namespace, i) => (
        <Trouble key={namespace ?? ""} error={lists.errors[i]} title={namespace === undefined ? "The archived runs could not be read" : `The archived runs of ${namespace} could not be read`} />
      ))}
      {runs.length > 0 && <List runs={runs} namespaces={scope.namespaces} filter={filter} onFilter={change} />}
      {loading ? <Skeleton height={320} aria-label="The runs are being listed" /> : asked.length > 0 && runs.length === 0 && lists.errors.every((error) => !error) && <Text>The archive has no runs here yet.</Text>}
    </Stack>
  );
}

interface ListProps {
  runs: readonly ArchivedRun[];
  namespaces: readonly string[] | undefined;
  filter: Filter;
  onFilter: (filter: Filter) => void;
}

function List({ runs, namespaces, filter, onFilter }: ListProps) {
  const found = useObjectsIn(experiments, namespaces);
  const existing = useMemo(() => new Set(found.objects?.map(({ metadata }) => metadata.uid)), [found.objects]);
  const shown = chosenRuns(runs, filter);
  return (
    <Stack gap="xs">
      <Filters entries={runs} shown={shown.length} filter={filter} onChange={onFilter} placeholder="Name, campaign, UID, problem" />
      <Damaged runs={shown} />
      <RunTable runs={shown} existing={existing} />
    </Stack>
  );
}
