import { ActionIcon, Button, Group, Table, TextInput } from "@mantine/core";
import { useState } from "react";
import { fromSeconds } from "./times";
import { moved, secondsTyped, timed, without, type Platform } from "./plan";

interface WaypointTableProps {
  platform: Platform;
  selected: number | undefined;
  onSelect: (index: number) => void;
  onChange: (platform: Platform) => void;
}

/** WaypointTable edits the waypoints of a platform by keyboard. */
export function WaypointTable({ platform, selected, onSelect, onChange }: WaypointTableProps) {
  return (
    <Table.ScrollContainer minWidth={380} maxHeight={320}>
      <Table aria-label={`Waypoints of platform ${platform.name || platform.number}`} verticalSpacing={2} horizontalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>At</Table.Th>
            <Table.Th>Latitude</Table.Th>
            <Table.Th>Longitude</Table.Th>
            <Table.Th>Altitude, m</Table.Th>
            <Table.Th aria-label="Remove" />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {platform.waypoints.map((point, index) => {
            const place = (change: { latitude?: number; longitude?: number; altitude?: number }) => { onChange(moved(platform, index, { ...point, ...change })); };
            return (
              <Table.Tr key={index} {...(index === selected && { bg: "var(--mantine-color-default-hover)" })} onFocus={() => { onSelect(index); }}>
                <Cell label={`Time of waypoint ${index + 1}`} value={fromSeconds(point.at)} read={secondsTyped} onChange={(at) => { onChange(timed(platform, index, at)); }} />
                <Cell label={`Latitude of waypoint ${index + 1}`} value={String(point.latitude)} read={within(90)} onChange={(latitude) => { place({ latitude }); }} />
                <Cell label={`Longitude of waypoint ${index + 1}`} value={String(point.longitude)} read={within(180)} onChange={(longitude) => { place({ longitude }); }} />
                <Cell label={`Altitude of waypoint ${index + 1}`} value={String(point.altitude ?? "")} read={within(100_000)} onChange={(altitude) => { place({ altitude }); }} />
                <Table.Td>
                  <ActionIcon variant="default" aria-label={`Remove waypoint ${index + 1}`} disabled={platform.waypoints.length === 1} onClick={() => { onChange(without(platform, index)); }}>
                    ×
                  </ActionIcon>
                </Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function within(most: number): (text: string) => number {
  return (text) => (text.trim() !== "" && Math.abs(Number(text)) <= most ? Number(text) : NaN);
}

/** Cell takes its value when it is left, or by Enter. It keeps and marks text that is no value. */
function Cell({ label, value, read, onChange }: { label: string; value: string; read: (text: string) => number; onChange: (value: number) => void }) {
  const [typed, setTyped] = useState<string>();
  const isWrong = typed !== undefined && Number.isNaN(read(typed));
  const take = () => {
    if (typed === undefined || isWrong) return;
    if (typed !== value) onChange(read(typed));
    setTyped(undefined);
  };
  return (
    <Table.Td>
      <TextInput
        size="xs"
        miw={72}
        aria-label={label}
        value={typed ?? value}
        error={isWrong}
        onChange={(event) => { setTyped(event.currentTarget.value); }}
        onBlur={take}
        onKeyDown={(event) => { if (event.key === "Enter") take(); }}
      />
    </Table.Td>
  );
}

interface PlatformFieldsProps {
  platform: Platform;
  speed: string;
  isSpeedWrong: boolean;
  onSpeed: (speed: string) => void;
  onChange: (platform: Platform) => void;
  onExtend: () => void;
  onRemove: () => void;
}

/** PlatformFields are the name of a platform, and how it goes on. */
export function PlatformFields({ platform, speed, isSpeedWrong, onSpeed, onChange, onExtend, onRemove }: PlatformFieldsProps) {
  return (
    <Group align="end" gap="sm">
      <TextInput
        size="xs"
        label={`Name of platform ${platform.number}`}
        value={platform.name}
        maxLength={253}
        onChange={(event) => { onChange({ ...platform, name: event.currentTarget.value }); }}
      />
      <TextInput size="xs" w={130} label="Speed to the next" value={speed} error={isSpeedWrong ? "such as 30km/h" : undefined} onChange={(event) => { onSpeed(event.currentTarget.value); }} />
      <Button size="xs" variant="default" onClick={onExtend} disabled={isSpeedWrong}>
        Add a waypoint in the middle
      </Button>
      <Button size="xs" variant="default" onClick={onRemove}>
        Remove platform
      </Button>
    </Group>
  );
}
