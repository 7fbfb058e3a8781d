import { Button, Group, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useRef, useState } from "react";
import type { Draft, Kind } from "../../components/livechange/draft";
import { LiveChangeForm } from "../../components/livechange/LiveChangeForm";
import { LiveChangeList } from "../../components/livechange/LiveChangeList";
import { Happenings } from "../../components/map/Happenings";
import type { MapHandle } from "../../components/map/MapCanvas";
import type { Place } from "../../components/map/projection";
import { RunMap, type RunSelection } from "../../components/map/RunMap";
import { useAccess } from "../../kubernetes/hooks";
import type { Experiment } from "../../types";
import { beginning, changesOf, placed, placeOf } from "./liveDraft";
import { isOver, isWaiting, neverRan } from "./state";

/** MapTab shows the nodes of an experiment on a map, and changes its networks by hand. */
export function MapTab({ experiment }: { experiment: Experiment }) {
  const { namespace = "", name, uid = "" } = experiment.metadata;
  const t0 = experiment.status?.t0 ?? undefined;
  const live = experiment.status?.phase === "Running";
  const map = useRef<MapHandle>(null);
  const [begun, setDraft] = useState<Draft>();
  // A run that is over cannot be changed.
  const draft = live ? begun : undefined;
  const allowed = useAccess({ verb: "create", group: "vignette.dev", resource: "livechanges", namespace });
  if (isWaiting(experiment)) return <Text>The map begins when the nodes are up.</Text>;
  if (neverRan(experiment)) return <Text>The experiment never ran: there is no map.</Text>;
  const place = draft && placeOf(draft);
  const onPlace = draft?.kind === "jammer" && !draft.ends ? (at: Place) => { setDraft(placed(draft, at)); } : undefined;
  const changing = (selection: RunSelection) => (
    <Stack gap="md">
      {live && allowed && !draft && <Beginnings selection={selection} onBegin={setDraft} />}
      {draft && (
        <LiveChangeForm
          experiment={{ namespace, name }}
          draft={draft}
          model={selection.data.networks.find((network) => network.name === draft.network)?.model ?? "link"}
          networks={selection.data.networks.map((network) => network.name)}
          names={namesOf(selection, draft.network)}
          onChange={setDraft}
          onClose={() => { setDraft(undefined); }}
          {...(!selection.nowhere && {
            onMiddle: () => {
              if (map.current) setDraft(placed(draft, map.current.placeInTheMiddle()));
            },
          })}
        />
      )}
      <Happenings happened={selection.data.happened ?? []} at={selection.at} live={live} />
      <LiveChangeList namespace={namespace} experiment={name} t0={t0} />
    </Stack>
  );
  return (
    <RunMap
      map={map}
      namespace={namespace}
      uid={uid}
      t0={t0}
      live={live}
      settled={isOver(experiment)}
      networks={experiment.spec.networks}
      withoutPositions={<WithoutPositions namespace={namespace} name={name} />}
      onPlace={onPlace}
      draft={place && { name: draft.values.name || "new jammer", place }}
    >
      {changing}
    </RunMap>
  );
}

export default MapTab;

/** namesOf the groups and nodes of a network. */
function namesOf({ data }: RunSelection, network: string): string[] {
  const nodes = data.nodes.filter(({ networks }) => networks?.includes(network));
  return [...new Set(nodes.flatMap(({ group, name }) => (group ? [group, name] : [name])))];
}

function Beginnings({ selection, onBegin }: { selection: RunSelection; onBegin: (draft: Draft) => void }) {
  const { network, node, link, data } = selection;
  const model = data.networks.find(({ name }) => name === network)?.model;
  const begin = (kind: Kind) => () => { onBegin(beginning(kind, network, node, link)); };
  return (
    <Group gap="sm">
      {changesOf(model, network, node, link).map(({ label, draft }) => (
        <Button key={label} variant="default" onClick={() => { onBegin(draft); }}>
          {label}
        </Button>
      ))}
      <Button variant="default" onClick={begin("silence")}>
        {node && model !== "link" ? `Silence the radio of ${node}` : "Silence radios"}
      </Button>
      {model !== "link" && (
        <Button variant="default" onClick={begin("jammer")}>
          Place a jammer
        </Button>
      )}
    </Group>
  );
}

function WithoutPositions({ namespace, name }: { namespace: string; name: string }) {
  return (
    <Stack align="start">
      <Text>No node of this network has a position: they stand in a circle. The topology has the networks and brokers.</Text>
      <Button variant="default" renderRoot={(props) => <Link {...props} to="/ns/$namespace/experiments/$name" params={{ namespace, name }} search={{ tab: "topology" } as never} />}>
        Show the topology
      </Button>
    </Stack>
  );
}
