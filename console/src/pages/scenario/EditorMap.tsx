import { Button, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Legend } from "../../components/map/Legend";
import { MapCanvas } from "../../components/map/MapCanvas";
import type { Place } from "../../components/map/projection";
import { valueLabel } from "../../components/map/scale";
import { TimeBar } from "../../components/map/TimeBar";
import { describeScene } from "../../components/map/words";
import { added, changed, extended, moved, speedTyped } from "./plan";
import type { EditorState } from "./useEditor";

type Mode = "select" | "platform" | "waypoint";

const hints: Record<Mode, string> = {
  select: "Click a platform to select it, drag its waypoints.",
  platform: "Click where the next platform begins.",
  waypoint: "Click where the selected platform goes next.",
};

/** EditorMap places platforms and their waypoints by pointer. */
export function EditorMap({ editor, speed }: { editor: EditorState; speed: string }) {
  const { map, plan, setPlan, platform, setNumber, setWaypoint, scene, select, clock } = editor;
  const [chosen, setMode] = useState<Mode>("platform");
  const mode = plan === undefined || (chosen === "waypoint" && !platform) ? "select" : chosen;
  const onPlace = (place: Place) => {
    if (!plan) return;
    if (mode === "waypoint" && platform) {
      setPlan(changed(plan, platform.number, (one) => extended(one, place, speedTyped(speed) || 1)));
      setWaypoint(platform.waypoints.length);
      return;
    }
    const more = added(plan, place);
    setPlan(more);
    setNumber(more.platforms.at(-1)?.number);
    setWaypoint(0);
  };
  return (
    <Stack gap="sm">
      {plan && (
        <Group gap="sm">
          <SegmentedControl
            aria-label="What a click on the map does"
            value={mode}
            onChange={(value) => {
              setMode(value === "platform" || value === "waypoint" ? value : "select");
            }}
            data={[
              { value: "select", label: "Select and drag" },
              { value: "platform", label: "Place platforms" },
              { value: "waypoint", label: "Add waypoints", disabled: !platform },
            ]}
          />
          <Text size="sm">{hints[mode]}</Text>
          <Button size="compact-sm" variant="default" onClick={() => { onPlaceInTheMiddle(); }}>
            Place a platform in the middle
          </Button>
        </Group>
      )}
      <MapCanvas
        ref={map}
        scene={scene}
        label={describeScene(scene, clock.at)}
        height={480}
        onSelect={select}
        onPlace={mode === "select" ? undefined : onPlace}
        hintOf={(node, link) => (link ? `${link.from} – ${link.to}: ${valueLabel("margin", link.forward ?? link.backward)} below the limit` : node)}
        onSelectHandle={(id) => {
          setWaypoint(Number(id.split("/")[1]));
        }}
        {...(plan && {
          onMoveHandle: (id: string, place: Place) => {
            const [number = 0, index = 0] = id.split("/").map(Number);
            setPlan(changed(plan, number, (one) => moved(one, index, place)));
            setWaypoint(index);
          },
        })}
      />
      <TimeBar clock={clock} t0={undefined} live={false} />
      <Legend measure="margin" />
    </Stack>
  );

  function onPlaceInTheMiddle() {
    const middle = map.current?.placeInTheMiddle();
    if (!plan || !middle) return;
    const more = added(plan, middle);
    setPlan(more);
    setNumber(more.platforms.at(-1)?.number);
    setWaypoint(0);
  }
}
