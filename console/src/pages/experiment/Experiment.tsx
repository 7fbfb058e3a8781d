import { Anchor, List, Loader, ScrollArea, Stack, Tabs, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Suspense, useEffect, type ComponentType } from "react";
import { runsQuery } from "../../archive/runs";
import { runSize } from "../../components/figures";
import { Moment } from "../../components/Moment";
import { RunLink } from "../../components/RunLink";
import { Trouble } from "../../components/Trouble";
import { Refusal } from "../../kubernetes/client";
import { useObject } from "../../kubernetes/hooks";
import { experiments } from "../../kubernetes/kinds";
import { clockOffset } from "../../kubernetes/time";
import { Header } from "./Header";
import { useRunState } from "./run";
import { samplesOf } from "./samples";
import type { TabProps } from "./tab";
import { tabOf, tabs } from "./tabs";

/** Experiment is the page of an experiment while it runs, and after. */
export function Experiment() {
  const { namespace = "", name = "" } = useParams({ strict: false });
  const { object, absent, error } = useObject(experiments, namespace, name);
  const run = useRunState(object);
  const uid = object?.metadata.uid ?? "";
  useEffect(() => {
    // Values read before the end stay until the rest is there, and are no new samples.
    if (uid !== "" && run.data && !run.isPlaceholderData) samplesOf(uid).add(run.dataUpdatedAt + clockOffset(), run.data);
    // An answer equal to the one before is a sample too, and data stays the same object then.
  }, [uid, run.data, run.dataUpdatedAt, run.isPlaceholderData]);
  if (!object) {
    return (
      <Stack>
        <Title order={1}>{name}</Title>
        <Trouble error={error} title="The experiment could not be read" />
        {absent && <Absent namespace={namespace} name={name} />}
        {!absent && !error && <Loader aria-label="The experiment is being read" />}
      </Stack>
    );
  }
  return (
    <Stack gap="md">
      <Trouble error={error} title="What is shown is not current" />
      <Header experiment={object} state={run.data} trouble={run.error} />
      <TabbedParts experiment={object} state={run.data} />
    </Stack>
  );
}

/** Absent leads on from the page of an experiment that was deleted, or never was. */
function Absent({ namespace, name }: { namespace: string; name: string }) {
  const archive = useQuery(runsQuery(namespace));
  const runs = (archive.data ?? []).filter((run) => run.name === name);
  return (
    <>
      <Trouble error={new Refusal(404, `There is no experiment ${name} in namespace ${namespace}.`)} title="No such experiment" />
      <Trouble error={archive.error} title="The archive's runs could not be listed" />
      {archive.data && <Text>{runs.length > 0 ? "It was deleted. The archive has its runs, the newest first:" : "The archive has no run of it."}</Text>}
      {runs.length > 0 && (
        <List>
          {runs.map(({ uid, t0, bytes }) => (
            <List.Item key={uid}>
              <RunLink run={{ namespace, uid }}>Run {uid}</RunLink>
              {t0 && (
                <>
                  {", T0 "}
                  <Moment time={t0} />
                </>
              )}
              {bytes !== undefined && `, ${runSize(bytes)}`}
            </List.Item>
          ))}
        </List>
      )}
      <Anchor underline="always" renderRoot={(props) => <Link {...props} to="/" />}>
        All experiments
      </Anchor>
    </>
  );
}

function TabbedParts({ experiment, state }: TabProps) {
  const search: { tab?: unknown } = useSearch({ strict: false });
  const navigate = useNavigate();
  const current = tabOf(search.tab);
  const choose = (tab: string | null) => {
    void navigate({ to: ".", search: (before: object) => ({ ...before, tab: tab ?? undefined }), replace: true, resetScroll: false });
  };
  const Part: ComponentType<TabProps> = current.part;
  return (
    <Tabs value={current.name} onChange={choose} keepMounted={false}>
      <ScrollArea type="auto" offsetScrollbars="x">
        <Tabs.List style={{ flexWrap: "nowrap" }}>
          {tabs.map(({ name, label }) => (
            <Tabs.Tab key={name} value={name}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
      </ScrollArea>
      <Tabs.Panel value={current.name} pt="md">
        <Suspense fallback={<Loader aria-label="This part is being loaded" />}>
          <Part experiment={experiment} state={state} />
        </Suspense>
      </Tabs.Panel>
    </Tabs>
  );
}
