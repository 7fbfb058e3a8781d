import { Alert, Anchor, Code, Group, Loader, Stack, Tabs, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { lazy, Suspense, type ComponentType } from "react";
import { isOver, runQuery, type RunState } from "../../archive/runs";
import type { Results as RunResults } from "../../archive/types";
import { useChoices } from "../../components/address";
import { CloneLink } from "../../components/CloneLink";
import { CompareLink } from "../../components/CompareLink";
import { Moment } from "../../components/Moment";
import { PhaseBadge } from "../../components/PhaseBadge";
import { span } from "../../components/time";
import { Trouble } from "../../components/Trouble";
import { Overview } from "./Overview";
import type { PartProps } from "./part";
import { gapsLabel } from "./words";

const Delays = lazy(() => import("./Delays").then(({ Delays }) => ({ default: Delays })));
const Requests = lazy(() => import("./Requests").then(({ Requests }) => ({ default: Requests })));
const Bursts = lazy(() => import("./Bursts").then(({ Bursts }) => ({ default: Bursts })));
const Picture = lazy(() => import("./Picture").then(({ Picture }) => ({ default: Picture })));
const Volume = lazy(() => import("./Volume").then(({ Volume }) => ({ default: Volume })));
const RunMapPart = lazy(() => import("./RunMapPart").then(({ RunMapPart }) => ({ default: RunMapPart })));
const Gaps = lazy(() => import("./Gaps").then(({ Gaps }) => ({ default: Gaps })));
const Files = lazy(() => import("./Files").then(({ Files }) => ({ default: Files })));
const Surroundings = lazy(() => import("./Surroundings").then(({ Surroundings }) => ({ default: Surroundings })));
const Report = lazy(() => import("./Report").then(({ Report }) => ({ default: Report })));

interface Part {
  id: string;
  label: string;
  component: ComponentType<PartProps>;
}

function partsOf(results: RunResults): Part[] {
  return [
    { id: "overview", label: "Overview", component: Overview },
    { id: "delays", label: "Delays and losses", component: Delays },
    ...(results.requests ? [{ id: "requests", label: "Requests", component: Requests }] : []),
    ...(results.bursts && results.bursts.length > 0 ? [{ id: "bursts", label: "Bursts", component: Bursts }] : []),
    ...(results.picture ? [{ id: "picture", label: "Picture", component: Picture }] : []),
    { id: "volume", label: "Volume", component: Volume },
    { id: "map", label: "Map", component: RunMapPart },
    { id: "gaps", label: gapsLabel(results), component: Gaps },
    { id: "files", label: "Files", component: Files },
    { id: "surroundings", label: "What was run", component: Surroundings },
    { id: "report", label: "Report", component: Report },
  ];
}

/** Results shows an archived run, also one whose experiment was deleted. */
export function Results() {
  const { namespace, uid } = useParams({ from: "/ns/$namespace/runs/$uid" });
  const { data: state, error } = useQuery(runQuery(namespace, uid));
  if (error && !state) return <Trouble error={error} title="This run could not be read" />;
  if (!state) return <Loader aria-label="The run is being read" />;
  return (
    <Stack>
      <Trouble error={error} title="What is shown is not current" />
      <Heading state={state} />
      {state.problem && (
        <Alert color="orange" variant="outline" title="This run has damaged records" style={{ overflowWrap: "anywhere" }}>
          {state.problem}
        </Alert>
      )}
      {state.results ? <Parts namespace={namespace} uid={uid} state={state} results={state.results} /> : <WithoutResults state={state} namespace={namespace} uid={uid} />}
    </Stack>
  );
}

function Heading({ state: { plan, results } }: { state: RunState }) {
  const { campaign } = plan;
  return (
    <Stack gap={4}>
      <Group gap="sm">
        <Title order={1} size="h2">
          {plan.name}
        </Title>
        <PhaseBadge phase={plan.phase} />
        <CompareLink runs={[`${plan.namespace}/${plan.uid}`]} />
        <CloneLink namespace={plan.namespace} run={plan.uid} size="compact-sm" />
      </Group>
      <Text size="sm">
        {plan.namespace} · UID <Code>{plan.uid}</Code>
        {plan.t0 && (
          <>
            {" · T0 "}
            <Moment time={plan.t0} />
          </>
        )}
        {results && ` · took ${span(results.durationSeconds)}`}
      </Text>
      <Text size="sm">
        <Anchor underline="always" renderRoot={(props) => <Link {...props} to="/ns/$namespace/experiments/$name" params={{ namespace: plan.namespace, name: plan.name }} />}>
          Experiment
        </Anchor>
        {campaign && (
          <>
            {" · "}
            <Anchor underline="always" renderRoot={(props) => <Link {...props} to="/ns/$namespace/campaigns/$name" params={{ namespace: plan.namespace, name: campaign.name }} />}>
              Campaign {campaign.name}
            </Anchor>
            , round {campaign.round}, point {campaign.point}
          </>
        )}
      </Text>
    </Stack>
  );
}

function Parts(props: PartProps) {
  const [choice, choose] = useChoices();
  const parts = partsOf(props.results);
  const chosen = parts.find(({ id }) => id === choice("part")) ?? parts[0];
  return (
    <Tabs
      value={chosen?.id ?? ""}
      keepMounted={false}
      onChange={(part) => {
        // Parts search and sort by parameters of the same names.
        choose({ part: part === "overview" || part === null ? undefined : part, find: undefined, sort: undefined });
      }}
    >
      <Tabs.List mb="md">
        {parts.map(({ id, label }) => (
          <Tabs.Tab key={id} value={id}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {parts.map(({ id, component: Component }) => (
        <Tabs.Panel key={id} value={id}>
          <Suspense fallback={<Loader aria-label="This part is being loaded" />}>
            <Component {...props} />
          </Suspense>
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

function WithoutResults({ state, namespace, uid }: { state: RunState; namespace: string; uid: string }) {
  return (
    <Stack>
      <Alert title={isOver(state) ? "This run has no results" : "This run has no results yet"} color={isOver(state) ? "orange" : "blue"}>
        {state.plan.message ?? `It is ${state.plan.phase}.`}
        {!isOver(state) && " They appear here as soon as the run was analysed."}
      </Alert>
      <Suspense fallback={<Loader aria-label="The files are being listed" />}>
        <Files namespace={namespace} uid={uid} ended={isOver(state)} />
      </Suspense>
    </Stack>
  );
}
