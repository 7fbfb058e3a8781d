import { Button, Grid, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { Draft } from "../../app/drafts";
import { NodeList } from "../../components/map/NodeList";
import { rowsOf } from "../../components/map/words";
import type { Kept } from "./draft";
import { DraftLine } from "./DraftLine";
import { EditorMap } from "./EditorMap";
import { PathlossPanel } from "./PathlossPanel";
import { changed, extended, removed, speedTyped, type Plan } from "./plan";
import { SaveBar, YamlText } from "./SaveBar";
import { asPlan } from "./scene";
import { useEditor } from "./useEditor";
import type { Loaded } from "./loaded";
import { PlatformFields, WaypointTable } from "./WaypointTable";

interface EditorProps {
  initial: Plan;
  loaded: Loaded | undefined;
  draft: Draft<Kept>;
  onDiscard: () => void;
  /** onSaved gets the plan that was saved and the present one. It reports whether the saved one is edited on. */
  onSaved: (saved: Plan, present: Plan) => boolean;
}

/** Editor edits a plan, or shows a Scenario whose movement it cannot edit. */
export function Editor({ initial, loaded, draft, onDiscard, onSaved }: EditorProps) {
  const editor = useEditor(initial, loaded, draft);
  const { plan, setPlan, platform, scene, clock, select, known, yaml, waypoint, setWaypoint, map, setNumber } = editor;
  const [speed, setSpeed] = useState("30km/h");
  const isSpeedWrong = Number.isNaN(speedTyped(speed));
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, lg: 7 }}>
        <EditorMap editor={editor} speed={speed} />
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 5 }}>
        <Stack gap="sm">
          <DraftLine editor={editor} onDiscard={onDiscard} />
          <NodeList rows={rowsOf(scene, clock.at)} selected={scene.selected} height={Math.min(220, 28 * Math.max(2, scene.nodes.length))} onSelect={select} label="Platforms" />
          {plan && platform && (
            <>
              <PlatformFields
                platform={platform}
                speed={speed}
                isSpeedWrong={isSpeedWrong}
                onSpeed={setSpeed}
                onChange={(next) => { setPlan(changed(plan, platform.number, () => next)); }}
                onExtend={() => {
                  const middle = map.current?.placeInTheMiddle();
                  if (middle) setPlan(changed(plan, platform.number, (one) => extended(one, middle, speedTyped(speed))));
                }}
                onRemove={() => {
                  setPlan(removed(plan, platform.number));
                  setNumber(undefined);
                }}
              />
              <WaypointTable platform={platform} selected={waypoint} onSelect={setWaypoint} onChange={(next) => { setPlan(changed(plan, platform.number, () => next)); }} />
            </>
          )}
          {!plan && loaded && (
            <Stack gap="xs" align="start">
              <Text size="sm">
                The editor changes the movement of one CSV file alone. That of Scenario {loaded.scenario.metadata.name} is shown and not edited.
              </Text>
              {known && (
                <Button
                  size="xs"
                  variant="default"
                  onClick={() => {
                    const { name, namespace = "" } = loaded.scenario.metadata;
                    setPlan(asPlan(known, { name: `${name}-edited`, namespace, description: loaded.scenario.spec.description ?? "", propagation: loaded.scenario.spec.propagation }));
                  }}
                >
                  Edit a copy as waypoints
                </Button>
              )}
            </Stack>
          )}
          <PathlossPanel editor={editor} />
        </Stack>
      </Grid.Col>
      <Grid.Col span={12}>{plan ? <SaveBar plan={plan} yaml={yaml} loaded={loaded} onChange={setPlan} onSaved={(saved) => { editor.setSaved({ plan: onSaved(saved, plan) ? saved : plan, version: undefined }); }} /> : <YamlText yaml={yaml} />}</Grid.Col>
    </Grid>
  );
}
