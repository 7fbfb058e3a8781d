import { CloseButton, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { useForm } from "../form/context";
import { EditButton } from "../form/EditButton";
import { ChoiceField, TextField } from "../form/fields";
import { at, fieldsOf, listOf, wordOf, type Path } from "../text/values";
import { groupOf } from "./topology";

/** PairLinks are what a network's links between two groups have of their own. */
export function PairLinks({ network }: { network: number }) {
  const { editing, edit } = useForm();
  const place: Path = ["networks", network];
  const own = fieldsOf(at(editing.spec, place));
  const links = listOf(own.links).map(fieldsOf);
  const groups = [...new Set(listOf(editing.spec.nodes).map(fieldsOf).map(groupOf))].filter((name) => name !== "");
  if (own.rfpipe !== undefined || own.tdma !== undefined) return null; // radios have no links of their own
  const added = () => {
    const [from = "", to = from] = groups;
    const link = { from, to, rate: "9.6kbit" };
    return [links.length === 0 ? editing.set([...place, "links"], [link]) : editing.set([...place, "links", links.length], link)];
  };
  return (
    <Stack gap="xs">
      <Text fw={600} size="sm">
        Links between groups that differ
      </Text>
      {links.map((link, l) => (
        <Group key={l} align="end" wrap="nowrap" gap="xs">
          <SimpleGrid cols={{ base: 2, md: 5 }} spacing="xs" flex={1}>
            <ChoiceField label="From" path={[...place, "links", l, "from"]} options={groups} />
            <ChoiceField label="To" path={[...place, "links", l, "to"]} options={groups} />
            <TextField label="Rate" path={[...place, "links", l, "rate"]} />
            <TextField label="Delay" path={[...place, "links", l, "delay"]} />
            <TextField label="Loss" path={[...place, "links", l, "loss"]} />
          </SimpleGrid>
          <CloseButton
            aria-label={`Remove the link from ${wordOf(link.from) || "all"} to ${wordOf(link.to) || "all"}`}
            onClick={() => {
              edit([editing.set(links.length === 1 ? [...place, "links"] : [...place, "links", l], undefined)]);
            }}
          />
        </Group>
      ))}
      <Group>
        <EditButton size="compact-xs" edits={added}>Add a link of two groups</EditButton>
      </Group>
    </Stack>
  );
}
