import { Loader, Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useSession } from "../../app/session";
import { askAgainAfter } from "../../archive/polling";
import { Trouble } from "../../components/Trouble";
import { draftOf } from "./draft";
import { sourceOf } from "./start/source";
import { Start } from "./start/Start";
import { Workshop } from "./Workshop";

/** Make is where experiments and campaigns are made: from the library, from a run, or from an empty form. */
export function Make() {
  const search: { from?: unknown } = useSearch({ strict: false });
  const from = typeof search.from === "string" ? search.from : undefined;
  return from === undefined ? <Start /> : <From key={from} from={from} />;
}

const askAgainMilliseconds = 5_000;

function From({ from }: { from: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["source", from],
    queryFn: ({ signal }) => sourceOf(from, signal),
    staleTime: Infinity,
    refetchInterval: ({ state }) => state.error !== null && askAgainAfter(state.error, askAgainMilliseconds),
  });
  const user = useSession().data?.user;
  const draft = useMemo(() => (user === undefined ? undefined : draftOf(user, from)), [user, from]);
  if (data && draft) return <Workshop source={data} draft={draft} />;
  return (
    <Stack>
      <Title order={1}>New experiment</Title>
      {error ? <Trouble error={error} title="There is nothing to begin with" onRetry={() => void refetch()} /> : <Loader aria-label="Reading" />}
    </Stack>
  );
}
