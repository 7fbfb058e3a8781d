import { Group, Paper, SimpleGrid, Stack, Text } from "@mantine/core";
import { namesOf } from "../text/complete";
import { at, fieldsOf, listOf, wordOf, type Path } from "../text/values";
import { ChangeFields } from "./ChangeFields";
import { useForm } from "./context";
import { EditButton } from "./EditButton";
import { Errors, NamesField, TextField } from "./fields";
import { appReferences } from "./nodes";
import { RemoveButton } from "./RemoveButton";

/** TimelineFields are what starts, stops and changes at which time. */
export function TimelineFields() {
  const { editing } = useForm();
  const entries = listOf(editing.spec.timeline);
  return (
    <Stack>
      {entries.length === 0 && <Text size="sm">All apps run from T0 to the end.</Text>}
      {entries.map((_, place) => (
        <EntryFields key={place} place={place} />
      ))}
      <Group gap="xs">
        <EditButton edits={() => editing.addEntry("start")}>Add a start</EditButton>
        <EditButton edits={() => editing.addEntry("stop")}>Add a stop</EditButton>
        <EditButton edits={() => editing.addEntry("set")}>Add a change of a network</EditButton>
      </Group>
    </Stack>
  );
}

function EntryFields({ place }: { place: number }) {
  const { editing } = useForm();
  const path: Path = ["timeline", place];
  const entry = fieldsOf(at(editing.spec, path));
  const name = `entry ${place + 1} of the timeline, at ${wordOf(entry.at) || "no time"}`;
  const apps = appReferences(editing.spec, namesOf(editing.spec.apps));
  return (
    <Paper withBorder p="xs" role="group" aria-label={name}>
      <Group align="start" wrap="nowrap" gap="xs">
        <Stack gap="xs" flex={1} miw={0}>
          <SimpleGrid cols={2} spacing="xs">
            <TextField label="At" path={[...path, "at"]} />
            <TextField label="Spread over" path={[...path, "over"]} placeholder="all at once" />
          </SimpleGrid>
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs">
            <NamesField label="Start" path={[...path, "start"]} options={apps} optional within />
            <NamesField label="Stop" path={[...path, "stop"]} options={apps} optional within />
          </SimpleGrid>
          <Errors of={[path, [...path, "set"]]} />
          {listOf(entry.set).map((_, change) => (
            <ChangeFields key={change} list={[...path, "set"]} place={change} />
          ))}
          {entry.set !== undefined && (
            <Group>
              <EditButton size="compact-xs" edits={() => editing.add([...path, "set"], editing.newChange())}>
                Change another network
              </EditButton>
            </Group>
          )}
        </Stack>
        <RemoveButton list={["timeline"]} place={place} what={name} />
      </Group>
    </Paper>
  );
}
