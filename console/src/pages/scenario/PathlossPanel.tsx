import { Group, NativeSelect, NumberInput, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { span } from "../../components/time";
import { Trouble } from "../../components/Trouble";
import { Curve } from "./Curve";
import { Hops } from "./Hops";
import type { EditorState } from "./useEditor";

// Shorter waits are not worth a word.
const longMilliseconds = 700;

/** PathlossPanel shows the pathloss between two platforms, and the hops between all, as they change. */
export function PathlossPanel({ editor }: { editor: EditorState }) {
  const { known, preview, labels, number, setNumber, other, setOther, limit, setLimit, clock } = editor;
  const [isLong] = useDebouncedValue(preview.isFetching, longMilliseconds);
  const choices = [{ value: "", label: "choose" }, ...[...labels].map(([value, label]) => ({ value: String(value), label }))];
  const numberOf = (text: string) => (text === "" ? undefined : Number(text));
  return (
    <Stack gap="sm" aria-busy={preview.isFetching}>
      <Group gap="sm" align="end">
        <NativeSelect size="xs" label="Pathloss from" value={String(number ?? "")} data={choices} onChange={(event) => { setNumber(numberOf(event.currentTarget.value)); }} />
        <NativeSelect size="xs" label="to" value={String(other ?? "")} data={choices} onChange={(event) => { setOther(numberOf(event.currentTarget.value)); }} />
        <NumberInput size="xs" w={150} label="Neighbours up to, dB" value={limit} min={1} max={300} onChange={(value) => { if (typeof value === "number" && value > 0) setLimit(value); }} />
      </Group>
      <Trouble error={preview.error} title="The scenario cannot be compiled as it is" />
      {isLong && <Text size="sm" role="status">The scenario is being compiled.</Text>}
      {known && clock.speed > 0 && <Text size="sm">The links of the map are those at {span(known.atSeconds)}.</Text>}
      {known && known.between.length > 0 && (
        <Curve title={`Pathloss from ${labels.get(number ?? 0) ?? ""} to ${labels.get(other ?? 0) ?? ""}`} unit="dB" at={clock.at} points={known.between.map(({ atSeconds, pathloss }) => ({ at: atSeconds, value: pathloss }))} />
      )}
      {known && <Hops preview={known} at={clock.at} />}
      {(known?.warnings ?? []).map((warning) => (
        <Text key={warning} size="sm">
          {warning}
        </Text>
      ))}
      {known !== undefined && known.leftOut > 0 && <Text size="sm">{known.leftOut} more links have a higher pathloss than those of the map.</Text>}
    </Stack>
  );
}
