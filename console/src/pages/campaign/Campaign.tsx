import { Alert, Anchor, Group, Loader, Progress, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { runsQuery } from "../../archive/runs";
import { useChoices } from "../../components/address";
import { compareSearch } from "../../components/CompareLink";
import { many } from "../../components/figures";
import { Moment } from "../../components/Moment";
import { PhaseBadge } from "../../components/PhaseBadge";
import { Trouble } from "../../components/Trouble";
import { useObject } from "../../kubernetes/hooks";
import { campaigns } from "../../kubernetes/kinds";
import type { Campaign as CampaignObject } from "../../types";
import { Actions } from "./Actions";
import { Round } from "./Round";
import { archivedRounds, runsOfStatus } from "./round";
import { RoundSelect } from "./RoundSelect";

/** Campaign shows the progress and the figures of a campaign; of a deleted one, and of earlier rounds, by the archive. */
export function Campaign() {
  const { namespace, name } = useParams({ from: "/ns/$namespace/campaigns/$name" });
  const { object, absent, error } = useObject(campaigns, namespace, name);
  const [choice] = useChoices();
  const current = object?.status?.round ?? 0;
  const wanted = Number(choice("round") ?? current);
  const fromArchive = absent || (object !== undefined && wanted !== current);
  const archive = useQuery({ ...runsQuery(namespace), enabled: fromArchive });
  const rounds = useMemo(() => archivedRounds(archive.data ?? [], name, object?.metadata.uid), [archive.data, name, object?.metadata.uid]);
  const archived = rounds.find(({ round }) => wanted === 0 || round === wanted);
  const runs = useMemo(() => (fromArchive ? (archived?.runs ?? []) : object ? runsOfStatus(object) : []), [fromArchive, archived, object]);
  if (error && !object && !absent) return <Trouble error={error} title="This campaign could not be read" />;
  if (!object && !absent) return <Loader aria-label="The campaign is being read" />;
  return (
    <Stack>
      <Group gap="sm">
        <Title order={1} size="h2">
          {name}
        </Title>
        <PhaseBadge phase={object?.status?.phase} />
        {object && <Actions campaign={object} namespace={namespace} />}
      </Group>
      <Trouble error={error} title="What is shown is not current" />
      {object ? <Progressing campaign={object} /> : <Alert title={`There is no campaign ${name} in namespace ${namespace}`}>{rounds.length > 0 ? "It was deleted. Its runs are read from the archive." : archive.data && "The archive has no run of it."}</Alert>}
      <Trouble error={archive.error} title="The archive's runs could not be listed" />
      <RoundSelect current={current} archived={rounds.map(({ round }) => round)} round={archived && fromArchive ? archived.round : wanted} />
      {runs.length > 0 && <Round namespace={namespace} campaign={object} runs={runs} archived={fromArchive} />}
      {fromArchive && archive.isPending && <Text>The archive&apos;s runs are being listed.</Text>}
      {runs.length === 0 && (object ? !fromArchive || archive.data : rounds.length > 0) && <Text>There are no runs of this round.</Text>}
    </Stack>
  );
}

function Progressing({ campaign: { spec, status, metadata } }: { campaign: CampaignObject }) {
  const counts = status?.counts;
  const total = counts?.total ?? 0;
  const comparedRuns = (status?.runs ?? []).flatMap(({ phase, uid }) => (phase === "Succeeded" && uid ? [`${metadata.namespace ?? ""}/${uid}`] : []));
  const share = (n: number | undefined) => (total === 0 ? 0 : (100 * (n ?? 0)) / total);
  return (
    <Stack gap={6}>
      <Text size="sm">
        {metadata.namespace}
        {status?.message && ` · ${status.message}`}
        {status?.estimatedCompletionTime && (
          <>
            {" · ends about "}
            <Moment time={status.estimatedCompletionTime} />
          </>
        )}
        {status?.nextScheduleTime && (
          <>
            {" · next round "}
            <Moment time={status.nextScheduleTime} />
          </>
        )}
      </Text>
      {counts && total > 0 && (
        <>
          <Progress.Root size="lg" aria-hidden="true">
            <Progress.Section value={share(counts.succeeded)} color="teal" />
            <Progress.Section value={share(counts.failed)} color="orange" />
            <Progress.Section value={share(counts.skipped)} color="gray" />
          </Progress.Root>
          <Text size="sm">
            {many(total, "run")}: {counts.succeeded} succeeded, {counts.failed} failed, {counts.running} under way, {counts.pending} to come
            {counts.skipped ? `, ${counts.skipped} skipped` : ""}. Up to {spec.parallelism ?? 1} at once.
          </Text>
        </>
      )}
      {status?.comparison && (
        <Text size="sm">
          The comparison of the round is on <Anchor renderRoot={(props) => <Link {...props} to="/compare" search={compareSearch(comparedRuns)} />}>Compare runs</Anchor>.
        </Text>
      )}
    </Stack>
  );
}
