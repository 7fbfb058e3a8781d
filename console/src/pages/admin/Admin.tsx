import { Skeleton, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useAdministration } from "../../app/administrator";
import { capacityQuery } from "../../components/capacity/capacity";
import { ClusterRoom, TeamRooms } from "../../components/capacity/CapacityView";
import { Trouble } from "../../components/Trouble";
import { Refusal } from "../../kubernetes/client";
import { useObjectsIn } from "../../kubernetes/hooks";
import { experiments } from "../../kubernetes/kinds";
import { ArchiveRoom } from "./ArchiveRoom";
import { Hosts } from "./Hosts";
import { Queue } from "./Queue";

/** Admin shows the state of the cluster to whoever may read its hosts. */
export function Admin() {
  const { allowed: administrator, error } = useAdministration();
  return (
    <Stack gap="lg">
      <Title order={1}>Administration</Title>
      <Trouble error={error} title="It is not known whether you may see this page" />
      {administrator === undefined && !error && <Skeleton height={200} />}
      {administrator === false && <Text>This page needs the right to list the hosts of the cluster. Ask the cluster&apos;s administrator for it.</Text>}
      {administrator && <Sections />}
    </Stack>
  );
}

function Sections() {
  const { data, error } = useQuery(capacityQuery());
  const { objects } = useObjectsIn(experiments, undefined);
  const namespaces = useMemo(() => [...new Set([...(data?.teams ?? []).map((team) => team.namespace), ...(objects ?? []).map((e) => e.metadata.namespace ?? "")])].sort(), [data, objects]);
  return (
    <>
      <ClusterRoom />
      {data ? <Queue queue={data.queue} rounded={data.positionsRounded === true} /> : !error && <Skeleton height={120} />}
      <Hosts capacity={data?.hosts ?? []} />
      <ArchiveRoom namespaces={namespaces} />
      <TeamRooms />
      {data?.archiveProblem && <Trouble error={new Refusal(0, data.archiveProblem)} title="The archive gave no answer" />}
    </>
  );
}
