import { Group, Paper, SimpleGrid, Stack } from "@mantine/core";
import { namesOf } from "../text/complete";
import { at, fieldsOf, wordOf, type Path } from "../text/values";
import { useForm } from "./context";
import { NameField, NamesField, TextField } from "./fields";
import { RemoveButton } from "./RemoveButton";

/** NodeFields are those of a node, or of several equal ones. */
export function NodeFields({ place }: { place: number }) {
  const { editing } = useForm();
  const path: Path = ["nodes", place];
  const node = fieldsOf(at(editing.spec, path));
  const moves = editing.spec.scenario !== undefined;
  const several = Number(node.count ?? 1) > 1;
  return (
    <Paper withBorder p="xs">
      <Group align="start" wrap="nowrap" gap="xs">
        <Stack gap="xs" flex={1} miw={0}>
          <SimpleGrid cols={moves ? { base: 2, xs: 4 } : 3} spacing="xs">
            <NameField list="nodes" place={place} />
            <TextField label="Count" path={[...path, "count"]} number placeholder="1" />
            <TextField label="Group" path={[...path, "group"]} placeholder={wordOf(node.name)} />
            {moves && (several ? <TextField label="Platforms" path={[...path, "platforms"]} placeholder="1-4" /> : <TextField label="Platform" path={[...path, "platform"]} placeholder="of the scenario" />)}
          </SimpleGrid>
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs">
            <NamesField label="Networks" path={[...path, "networks"]} options={namesOf(editing.spec.networks)} within />
            <NamesField label="Apps" path={[...path, "apps"]} options={namesOf(editing.spec.apps)} within />
          </SimpleGrid>
        </Stack>
        <RemoveButton list={["nodes"]} place={place} what={`node ${wordOf(node.name)}`} />
      </Group>
    </Paper>
  );
}
