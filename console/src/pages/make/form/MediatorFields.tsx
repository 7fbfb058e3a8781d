import { Group, SimpleGrid, Stack } from "@mantine/core";
import { namesOf } from "../text/complete";
import { at, fieldsOf, listOf, wordOf, type Path } from "../text/values";
import { brokerOf } from "./actions";
import { useForm } from "./context";
import { EditButton } from "./EditButton";
import { ChoiceField, Errors, TextField, WordsField } from "./fields";
import { RemoveButton } from "./RemoveButton";

/** MediatorFields are the legs of a mediator, each a connection to a broker. */
export function MediatorFields({ app }: { app: number }) {
  const { editing } = useForm();
  const list: Path = ["apps", app, "mediator", "legs"];
  const brokers = namesOf(listOf(editing.spec.apps).map(fieldsOf).filter((each) => brokerOf(each) ?? each.mqttsnGateway));
  return (
    <Stack gap="xs">
      {listOf(at(editing.spec, list)).map((leg, place) => {
        const path: Path = [...list, place];
        const name = `leg ${place + 1}, to ${wordOf(fieldsOf(leg).to) || "no broker"}`;
        return (
          <Group key={place} align="start" wrap="nowrap" gap="xs" role="group" aria-label={name}>
            <Stack gap={0} flex={1} miw={0}>
              <SimpleGrid cols={{ base: 2, md: 3 }} spacing="xs">
                <ChoiceField label="Protocol" path={[...path, "protocol"]} optional={false} />
                <ChoiceField label="Broker at" path={[...path, "to"]} options={brokers} />
                <ChoiceField label="QoS" path={[...path, "qos"]} options={["0", "1", "2"]} number />
                <WordsField label="Topics" path={[...path, "topics"]} optional within placeholder="all" />
                <TextField label="Prefix" path={[...path, "prefix"]} placeholder="none" />
              </SimpleGrid>
              <Errors of={[path]} />
            </Stack>
            <RemoveButton list={list} place={place} what={name} />
          </Group>
        );
      })}
      <Errors of={[list.slice(0, -1), list]} />
      <Group>
        <EditButton size="compact-xs" edits={() => editing.add(list, editing.newLeg(listOf(at(editing.spec, list))))}>
          Add a leg
        </EditButton>
      </Group>
    </Stack>
  );
}
