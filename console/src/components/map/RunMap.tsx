import { Grid, Group, Loader, NativeSelect, SegmentedControl, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState, type ReactNode, type RefObject } from "react";
import { askAgainAfter } from "../../archive/polling";
import { useChoices } from "../address";
import { Trouble } from "../Trouble";
import { hopsOver, isOfNetwork, isRouted, jammersAt, linksKey, linksOf, measureFrom, momentFrom, nodesOf, readLinks, readMap, silentAt, type RunMapData } from "./api";
import { inCircle, isNowhere } from "./circle";
import { useMapClock } from "./clock";
import { Legend } from "./Legend";
import { MapCanvas, type MapHandle } from "./MapCanvas";
import { NodeList } from "./NodeList";
import type { Place } from "./projection";
import type { Measure } from "./scale";
import type { MapJammer, MapLink, Scene } from "./scene";
import { TimeBar } from "./TimeBar";
import { durationOf } from "./tracks";
import { describeLink, describeScene, remarksOf, rowsOf } from "./words";

/** What is selected on the map of a run. */
export interface RunSelection {
  network: string;
  node: string | undefined;
  link: MapLink | undefined;
  /** at is the moment that the map shows. */
  at: number;
  /** nowhere: no node of the network has a position, so that places on the map mean nothing. */
  nowhere: boolean;
  data: RunMapData;
}

export interface RunMapProps {
  namespace: string;
  uid: string;
  t0: string | undefined;
  /** live: the run goes on. */
  live: boolean;
  /** settled: the run's record changes no more. Its end adds what others knew of positions. */
  settled: boolean;
  /** networks of the run's spec, which say who is routed. */
  networks: Parameters<typeof isRouted>[0];
  /** withoutPositions is shown above the map of a network whose nodes stand in a circle. */
  withoutPositions: ReactNode;
  /** map that is shown, for those who have to ask it. */
  map: RefObject<MapHandle | null>;
  onPlace?: ((place: Place) => void) | undefined;
  /** jammer that is being placed. */
  draft?: MapJammer | undefined;
  /** children get what is selected, and stand below the map. */
  children?: (selection: RunSelection) => ReactNode;
}

const mapMilliseconds = 10_000;

/** RunMap shows where the nodes of a run are, and the links between them, live or at a moment. */
export function RunMap(props: RunMapProps) {
  const { namespace, uid, settled } = props;
  const map = useQuery({
    queryKey: ["map", namespace, uid, settled ? "at the end" : "so far"],
    queryFn: ({ signal }) => readMap(namespace, uid, signal),
    placeholderData: (before, query) => (query?.queryKey[2] === uid ? before : undefined),
    refetchInterval: ({ state }) => (settled ? false : askAgainAfter(state.error, mapMilliseconds)),
    enabled: uid !== "",
  });
  if (!map.data) return map.error ? <Trouble error={map.error} title="The map could not be read" /> : <Loader aria-label="The map is being read" />;
  return <KnownRunMap {...props} data={map.data} trouble={map.error} />;
}

const mapHeight = 520;
const linksEverySeconds = 5;

function KnownRunMap({ namespace, uid, t0, live, networks, map, withoutPositions, onPlace, draft, children, data, trouble }: RunMapProps & { data: RunMapData; trouble: Error | null }) {
  const [choice, choose] = useChoices();
  const [link, setLink] = useState<MapLink>();
  const [byRoutes, setByRoutes] = useState(false);
  const network = data.networks.find(({ name }) => name === choice("network")) ?? data.networks[0];
  const name = network?.name ?? "";
  const measure = network?.links === false ? "delivered" : measureFrom(choice("links"), network?.model);
  const known = useMemo(() => nodesOf(data, name), [data, name]);
  const circle = isNowhere(known);
  const nowhere = circle || known.length === 0;
  const node = known.find((one) => one.name === choice("node"))?.name;
  const nodes = useMemo(() => (circle ? inCircle(known) : known), [circle, known]);
  const duration = data.durationSeconds ?? durationOf(nodes.map(({ track }) => track));
  const start = t0 ?? data.t0 ?? undefined;
  const clock = useMapClock({ t0: start ? new Date(start).getTime() : undefined, live, duration, map, begin: momentFrom(choice("at")) });
  const moment = linksEverySeconds * Math.floor(clock.at / linksEverySeconds);
  // Hops over links are counted here. Only routes have to be asked for, for each node.
  const hopsOf = byRoutes ? node : undefined;
  const key = linksKey(namespace, uid, name, clock.isLive ? undefined : moment, hopsOf);
  const links = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => readLinks(namespace, uid, name, clock.isLive ? undefined : moment, hopsOf, signal),
    enabled: network !== undefined && start !== undefined,
    placeholderData: (before, query) => (isOfNetwork(key, query?.queryKey) ? before : undefined),
    refetchInterval: clock.isLive ? 1000 * linksEverySeconds : false,
    staleTime: live ? 5_000 : Infinity,
    gcTime: 30_000,
  });
  if (links.data?.hopsByRoutes && !byRoutes) setByRoutes(true);
  // Jammers and silences are known for each second, links are not.
  const second = Math.floor(clock.at);
  const silentNames = [...silentAt(data, name, second)].join(" "); // the same set each second is drawn once
  const silent = useMemo(() => new Set(silentNames.split(" ").filter((one) => one !== "")), [silentNames]);
  const hasRadios = network?.links !== false;
  const lines = useMemo(() => linksOf(links.data, measure, hasRadios ? silent : undefined), [links.data, measure, hasRadios, silent]);
  const routed = isRouted(networks, name);
  const hops = useMemo(() => hopsOver(links.data, node, routed), [links.data, node, routed]);
  const scene = useMemo<Scene>(
    () => ({
      nodes,
      links: lines,
      jammers: nowhere ? [] : [...jammersAt(data, name, second), ...(draft ? [draft] : [])],
      handles: [],
      terrain: data.terrain ?? undefined,
      inCircle: circle,
      silent,
      hops,
      isDirect: !routed,
      selected: node,
    }),
    [nodes, nowhere, circle, lines, hops, routed, data, name, second, silent, node, draft],
  );
  const select = (next: string | undefined) => {
    choose({ node: next });
    setLink(undefined);
  };
  const chooseNetwork = (next: string) => {
    choose({ network: next, node: undefined });
    setByRoutes(false);
    setLink(undefined);
  };
  return (
    <Stack gap="sm">
      {circle && withoutPositions}
      <Trouble error={trouble ?? links.error} title="What the map shows is not current" />
      <Choices data={data} network={network} onNetwork={chooseNetwork} measure={measure} onMeasure={(next) => { choose({ links: next }); }} />
      <Grid gap="sm">
        <Grid.Col span={{ base: 12, md: 9 }}>
          <MapCanvas
            ref={map}
            scene={scene}
            label={describeScene(scene, clock.at)}
            height={mapHeight}
            onPlace={nowhere ? undefined : onPlace}
            onSelect={select}
            onSelectLink={(next) => {
              choose({ node: undefined });
              setLink(next);
            }}
            hintOf={(over, between) => (between ? describeLink(between, measure) : over)}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 3 }}>
          <NodeList rows={rowsOf(scene, clock.at)} selected={node} height={mapHeight} onSelect={select} label={`Nodes of network ${name}`} />
        </Grid.Col>
      </Grid>
      <TimeBar clock={clock} t0={start} live={live} onChosen={(at) => { choose({ at: at === undefined ? undefined : String(at) }); }} />
      <Legend measure={measure} signs={{ ranges: scene.jammers.some(({ rangeMetres }) => rangeMetres !== undefined), reported: nodes.some(({ reported }) => (reported?.length ?? 0) > 0) }} />
      <Remarks remarks={remarksOf(data, links.data, scene, name)} />
      {link && <Text size="sm">{describeLink(scene.links.find((one) => one.from === link.from && one.to === link.to) ?? link, measure)}</Text>}
      {children?.({ network: name, node, link, at: clock.at, nowhere, data })}
    </Stack>
  );
}

function Remarks({ remarks }: { remarks: readonly string[] }) {
  return remarks.map((remark) => (
    <Text key={remark} size="sm">
      {remark}
    </Text>
  ));
}

// More names have no room beside each other.
const mostBeside = 3;

function Choices({ data, network, onNetwork, measure, onMeasure }: { data: RunMapData; network: RunMapData["networks"][number] | undefined; onNetwork: (name: string) => void; measure: Measure; onMeasure: (measure: Measure) => void }) {
  return (
    <Group gap="sm">
      {data.networks.length > mostBeside ? (
        <NativeSelect aria-label="Network" value={network?.name ?? ""} onChange={(event) => { onNetwork(event.currentTarget.value); }} data={data.networks.map(({ name }) => name)} />
      ) : (
        data.networks.length > 1 && <SegmentedControl aria-label="Network" value={network?.name ?? ""} onChange={onNetwork} data={data.networks.map(({ name }) => name)} />
      )}
      <SegmentedControl
        aria-label="What the links show"
        value={measure}
        onChange={(value) => {
          onMeasure(value === "sinr" ? "sinr" : "delivered");
        }}
        data={[
          ...(network?.links === false ? [] : [{ value: "sinr", label: "SINR" }]),
          { value: "delivered", label: "Delivered share" },
        ]}
      />
    </Group>
  );
}
