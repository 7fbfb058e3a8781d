import { Group, Loader, NativeSelect, Stack, Title } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useFirstNamespace } from "../../app/scope";
import { useSession } from "../../app/session";
import { Trouble } from "../../components/Trouble";
import { useObjects } from "../../kubernetes/hooks";
import { scenarios } from "../../kubernetes/kinds";
import { draftOf } from "./draft";
import { Editor } from "./Editor";
import type { Plan, Propagation } from "./plan";
import { useScenario } from "./useScenario";

const propagation = { model: "FreeSpace", frequency: "300MHz" } as Propagation;

/** ScenarioEditor makes scenarios of platforms and waypoints, and shows those of the cluster. */
export function ScenarioEditor() {
  const session = useSession();
  const first = useFirstNamespace();
  const search: { namespace?: unknown; scenario?: unknown } = useSearch({ strict: false });
  const navigate = useNavigate();
  const namespace = typeof search.namespace === "string" ? search.namespace : first;
  const name = typeof search.scenario === "string" ? search.scenario : undefined;
  const loaded = useScenario(namespace, name);
  const user = session.data?.user ?? "";
  // The namespace that a user names meanwhile is none of the draft's address.
  const asked = typeof search.namespace === "string" ? search.namespace : "";
  const draft = useMemo(() => draftOf(user, asked, name), [user, asked, name]);
  const [discarded, setDiscarded] = useState(0);
  // Who may not list those of all namespaces sees those of one.
  const all = useObjects(scenarios);
  const own = useObjects(scenarios, { namespace });
  const objects = all.objects ?? own.objects;
  const error = objects ? undefined : own.error;
  const open = (key: string) => {
    const [chosen, scenario] = key.split("/");
    void navigate({ to: "/scenarios/edit", search: (scenario ? { namespace: chosen, scenario } : {}) as never });
  };
  const fresh: Plan = { name: "patrol", namespace, description: "", platforms: [], propagation };
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <Title order={1}>Scenario editor</Title>
        <NativeSelect
          aria-label="Scenario"
          value={name ? `${namespace}/${name}` : ""}
          data={[{ value: "", label: "A new scenario" }, ...(objects ?? []).map(({ metadata }) => `${metadata.namespace ?? ""}/${metadata.name}`)]}
          onChange={(event) => {
            open(event.currentTarget.value);
          }}
        />
      </Group>
      <Trouble error={error} title="The scenarios of the cluster could not be listed" />
      <Trouble error={loaded.error} title={`Scenario ${name ?? ""} could not be read`} />
      {session.data && (name === undefined || loaded.data) ? (
        <Editor
          key={`${asked}/${name ?? ""} ${discarded}`}
          draft={draft}
          onDiscard={() => {
            draft.discard();
            setDiscarded(discarded + 1);
          }}
          initial={fresh}
          loaded={name === undefined ? undefined : loaded.data}
          onSaved={(saved, present) => {
            const stays = saved.name === name && saved.namespace === namespace;
            if (!stays || present === saved) draft.discard();
            if (stays) return true;
            // What was edited meanwhile is a draft of the new Scenario.
            if (present !== saved) draftOf(user, saved.namespace, saved.name).keep({ plan: present });
            open(`${saved.namespace}/${saved.name}`);
            return false;
          }}
        />
      ) : (
        !loaded.error && <Loader aria-label="The scenario is being read" />
      )}
    </Stack>
  );
}
