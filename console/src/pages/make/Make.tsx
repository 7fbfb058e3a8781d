import { Loader, Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { Trouble } from "../../components/Trouble";
import { sourceOf } from "./start/source";
import { Start } from "./start/Start";
import { Workshop } from "./Workshop";

/** Make is where experiments and campaigns are made: from the library, from a run, or from an empty form. */
export function Make() {
  const search: { from?: unknown } = useSearch({ strict: false });
  const from = typeof search.from === "string" ? search.from : undefined;
  return from === undefined ? <Start /> : <From key={from} from={from} />;
}

function From({ from }: { from: string }) {
  const { data, error } = useQuery({ queryKey: ["source", from], queryFn: ({ signal }) => sourceOf(from, signal), staleTime: Infinity });
  if (data) return <Workshop source={data} />;
  return (
    <Stack>
      <Title order={1}>New experiment</Title>
      {error ? <Trouble error={error} title="There is nothing to begin with" /> : <Loader aria-label="Reading" />}
    </Stack>
  );
}
