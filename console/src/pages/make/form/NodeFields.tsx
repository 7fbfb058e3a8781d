import { Box, Group, SimpleGrid } from "@mantine/core";
import { namesOf } from "../text/complete";
import { at, fieldsOf, wordOf, type Path } from "../text/values";
import { useForm } from "./context";
import { NamesField, TextField } from "./fields";
import { RemoveButton } from "./RemoveButton";

/** NodeFields are those of a node, or of several equal ones. */
export function NodeFields({ place }: { place: number }) {
  const { editing } = useForm();
  const path: Path = ["nodes", place];
  const node = fieldsOf(at(editing.spec, path));
  return (
    <Group align="end" wrap="nowrap" gap="xs">
      <Box flex={1}>
        <SimpleGrid cols={{ base: 2, md: 5 }} spacing="xs">
          <TextField label="Name" path={[...path, "name"]} />
          <TextField label="Count" path={[...path, "count"]} number placeholder="1" />
          <TextField label="Group" path={[...path, "group"]} placeholder={wordOf(node.name)} />
          <NamesField label="Networks" path={[...path, "networks"]} options={namesOf(editing.spec.networks)} within />
          <NamesField label="Apps" path={[...path, "apps"]} options={namesOf(editing.spec.apps)} within />
        </SimpleGrid>
      </Box>
      <RemoveButton list="nodes" place={place} what={`node ${wordOf(node.name)}`} />
    </Group>
  );
}
