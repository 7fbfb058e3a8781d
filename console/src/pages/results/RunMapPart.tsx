import { Text } from "@mantine/core";
import { useRef } from "react";
import { Happenings } from "../../components/map/Happenings";
import type { MapHandle } from "../../components/map/MapCanvas";
import { RunMap } from "../../components/map/RunMap";
import type { PartProps } from "./part";

/** RunMapPart plays the movement of an archived run again, with its links and what happened to its networks. */
export function RunMapPart({ namespace, uid, state }: PartProps) {
  const map = useRef<MapHandle>(null);
  return (
    <RunMap map={map} namespace={namespace} uid={uid} t0={state.plan.t0 ?? undefined} live={false} settled networks={state.plan.spec.networks} withoutPositions={<Text>No node of this network has a position: they stand in a circle.</Text>}>
      {({ data, at }) => <Happenings happened={data.happened ?? []} at={at} live={false} />}
    </RunMap>
  );
}
