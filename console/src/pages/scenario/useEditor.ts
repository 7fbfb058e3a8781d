import { useMemo, useRef, useState } from "react";
import { useKept, type Draft } from "../../app/drafts";
import { useMapClock } from "../../components/map/clock";
import type { MapHandle } from "../../components/map/MapCanvas";
import { durationOf } from "../../components/map/tracks";
import { versionOf, type Kept } from "./draft";
import { objectsOf, yamlOf } from "./objects";
import { labelOf, type Plan } from "./plan";
import { questionOf } from "./question";
import { handlesOf, labelsOf, nodesOf, nodesOfPreview, sceneOf } from "./scene";
import { usePreview } from "./usePreview";
import type { Loaded } from "./loaded";

const previewEverySeconds = 5;

/** useEditor is the state of the editor: a plan that is edited, or a Scenario that is only shown, and its preview. */
export function useEditor(initial: Plan, loaded: Loaded | undefined, draft: Draft<Kept>) {
  const map = useRef<MapHandle>(null);
  const [restored] = useState(() => draft.read());
  // What is saved, and the version from which a draft began that was left here before.
  const [saved, setSaved] = useState({ plan: loaded ? loaded.plan : initial, version: restored?.version });
  const [plan, setPlan] = useState<Plan | undefined>(restored?.plan ?? saved.plan);
  const version = saved.version ?? versionOf(loaded);
  const kept = useMemo(() => (plan && plan !== saved.plan ? { plan, version } : undefined), [plan, saved, version]);
  const isFull = useKept(draft, kept);
  const [number, setNumber] = useState<number>();
  const [waypoint, setWaypoint] = useState<number>();
  const [limit, setLimit] = useState(121);
  const [other, setOther] = useState<number>();

  const terrain = plan?.propagation?.terrain?.configMap;
  const yaml = useMemo(() => {
    if (!plan) return loaded ? yamlOf({ scenario: loaded.scenario }, loaded.files) : "";
    return yamlOf(objectsOf(plan), loaded?.files.filter((file) => file.metadata.name === terrain));
  }, [plan, loaded, terrain]);
  const [moment, setMoment] = useState(0);
  const question = useMemo(() => questionOf({ text: yaml, platforms: plan?.platforms.map((one) => one.number), at: moment, limit, from: number, to: other }), [yaml, plan, moment, limit, number, other]);
  const preview = usePreview(question);
  const known = question === undefined ? undefined : preview.data;

  const duration = Math.max(durationOf((plan?.platforms ?? []).map(({ waypoints }) => waypoints)), known?.durationSeconds ?? 0);
  const clock = useMapClock({ t0: undefined, live: false, duration, map });
  const shown = previewEverySeconds * Math.floor(clock.at / previewEverySeconds);
  if (shown !== moment) setMoment(shown);

  const platform = plan?.platforms.find((one) => one.number === number);
  const labels = useMemo(() => labelsOf(plan?.platforms ?? [], known), [plan, known]);
  const nodes = useMemo(() => (plan ? nodesOf(plan.platforms) : nodesOfPreview(known)), [plan, known]);
  const selected = platform ? labelOf(platform) : number === undefined ? undefined : labels.get(number);
  const scene = useMemo(() => sceneOf(nodes, known, labels, selected, handlesOf(platform, waypoint)), [nodes, known, labels, selected, platform, waypoint]);

  /** select a platform by what the map calls it. */
  const select = (label: string | undefined) => {
    setNumber([...labels].find(([, one]) => one === label)?.[0]);
    setWaypoint(undefined);
  };
  return { map, plan, setPlan, platform, number, setNumber, waypoint, setWaypoint, limit, setLimit, other, setOther, yaml, preview, known, clock, labels, scene, select, setSaved, isChanged: kept !== undefined, isFull, isOld: version !== versionOf(loaded) };
}

export type EditorState = ReturnType<typeof useEditor>;
