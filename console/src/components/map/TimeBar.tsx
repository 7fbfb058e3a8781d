import { Button, Group, NativeSelect, Slider, Text } from "@mantine/core";
import { Moment } from "../Moment";
import { span } from "../time";
import type { MapClock } from "./clock";

const speeds = [1, 10, 60, 300];

/** TimeBar chooses the moment that a map shows. onChosen gets one at which the map stands, or none where it follows the run. */
export function TimeBar({ clock, t0, live, onChosen }: { clock: MapClock; t0: string | undefined; live: boolean; onChosen?: (at: number | undefined) => void }) {
  const { at, end, speed, isLive } = clock;
  return (
    <Group gap="sm" wrap="wrap" role="group" aria-label="Time of the map">
      {live && (
        <Button size="xs" variant={isLive ? "filled" : "default"} aria-pressed={isLive} onClick={() => { clock.goLive(); onChosen?.(undefined); }}>
          {isLive ? "Live" : "Go live"}
        </Button>
      )}
      <Button
        size="xs"
        variant="default"
        onClick={() => {
          if (at >= end && speed === 0 && !live) clock.goTo(0);
          clock.play(speed > 0 ? 0 : (speeds[1] ?? 1));
          if (speed > 0) onChosen?.(Math.floor(at));
        }}
      >
        {speed > 0 ? "Pause" : "Play"}
      </Button>
      {speed > 0 && (
        <NativeSelect
          size="xs"
          aria-label="Speed"
          value={String(speed)}
          data={speeds.map((value) => ({ value: String(value), label: `${value} ×` }))}
          onChange={(event) => {
            clock.play(Number(event.currentTarget.value));
          }}
        />
      )}
      <Slider
        flex={1}
        miw={160}
        min={0}
        max={Math.max(1, Math.ceil(end))}
        step={1}
        value={Math.min(at, Math.ceil(end))}
        onChange={clock.goTo}
        onChangeEnd={(value) => {
          onChosen?.(value);
        }}
        label={(value) => `T0+${span(value)}`}
        thumbLabel="Moment of the map, in seconds after T0"
      />
      <Text size="sm" miw={90}>
        {t0 ? <Moment time={new Date(new Date(t0).getTime() + 1000 * at).toISOString()} t0={t0} /> : `T0+${span(at)}`}
      </Text>
    </Group>
  );
}
