import { Button, Group, NativeSelect, Paper, SimpleGrid, Stack, Text } from "@mantine/core";
import { modelOf, models } from "../../../components/models";
import { useObjects } from "../../../kubernetes/hooks";
import { waveforms } from "../../../kubernetes/kinds";
import { wordsAt } from "../text/findings";
import { at, fieldsOf, wordOf, type Path } from "../text/values";
import { useForm } from "./context";
import { ChoiceField, NameField, TextField } from "./fields";
import { beginnings, fieldsOfModel, modelOfWaveform, summaryOf } from "./models";
import { RemoveButton } from "./RemoveButton";

/** NetworkFields are those of a network: its model first. */
export function NetworkFields({ place }: { place: number }) {
  const { editing } = useForm();
  const path: Path = ["networks", place];
  const network = fieldsOf(at(editing.spec, path));
  const model = modelOf(network);
  return (
    <Paper withBorder p="xs">
      <Stack gap="xs">
        <Group justify="space-between" wrap="nowrap">
          <Text fw={600}>{wordOf(network.name) || `Network ${place + 1}`}</Text>
          <RemoveButton list={["networks"]} place={place} what={`network ${wordOf(network.name)}`} />
        </Group>
        <SimpleGrid cols={{ base: 2, md: 4 }} spacing="xs">
          <NameField list="networks" place={place} />
          <ModelField place={place} />
          <TextField label="Subnet" path={[...path, "subnet"]} />
          <ChoiceField label="Routing" path={[...path, "routing", "protocol"]} />
        </SimpleGrid>
        {model ? (
          <SimpleGrid cols={{ base: 2, md: 4 }} spacing="xs">
            {(fieldsOfModel[model] ?? []).map((field) => (
              <TextField key={field.label} label={field.label} path={[...path, model, ...field.path]} number={field.label === "Slots"} />
            ))}
          </SimpleGrid>
        ) : (
          <WaveformLine place={place} name={wordOf(network.waveform)} />
        )}
      </Stack>
    </Paper>
  );
}

function ModelField({ place }: { place: number }) {
  const { editing, findings, edit } = useForm();
  const { objects } = useObjects(waveforms);
  const path: Path = ["networks", place];
  const network = fieldsOf(at(editing.spec, path));
  const model = modelOf(network);
  const named = wordOf(network.waveform);
  const names = [...new Set([...(objects ?? []).map((w) => w.metadata.name), ...(named ? [named] : [])])];
  return (
    <NativeSelect
      label="Waveform"
      error={wordsAt(findings, editing.written.object, editing.path([...path, model ?? "waveform"]))}
      value={model ? `own:${model}` : named}
      data={[
        ...(model || named ? [] : [{ value: "", label: "–" }]),
        { group: "Its own model", items: models.map((each) => ({ value: `own:${each}`, label: `own ${each}` })) },
        { group: "Named", items: names },
      ]}
      onChange={(event) => {
        const chosen = event.currentTarget.value;
        const own = chosen.startsWith("own:") ? chosen.slice(4) : undefined;
        if (own) edit(editing.useModel(place, own, beginnings[own] ?? {}));
        else if (chosen) edit(editing.useWaveform(place, chosen));
      }}
    />
  );
}

/** WaveformLine says what a named waveform is, and offers its values for change. */
function WaveformLine({ place, name }: { place: number; name: string }) {
  const { editing, edit } = useForm();
  const { objects } = useObjects(waveforms);
  const waveform = objects?.find((w) => w.metadata.name === name);
  const found = waveform && modelOfWaveform(waveform);
  if (!waveform || !found) return null;
  return (
    <Group gap="xs">
      <Text size="sm" c="dimmed">
        {summaryOf(waveform)}
      </Text>
      <Button
        size="compact-xs"
        variant="default"
        onClick={() => {
          edit(editing.useModel(place, found.model, found.values));
        }}
      >
        Change its parameters here
      </Button>
    </Group>
  );
}
