import { Button, Fieldset, Group, Menu, SimpleGrid, Stack } from "@mantine/core";
import { brokers } from "../../../components/brokers";
import { AppFields } from "./AppFields";
import { useForm } from "./context";
import { EditButton } from "./EditButton";
import { Errors, NamesField, TextField } from "./fields";
import { NetworkFields } from "./NetworkFields";
import { NodeFields } from "./NodeFields";
import { TimelineFields } from "./TimelineFields";
import { namesOf } from "../text/complete";
import { listOf } from "../text/values";

/** Form has what people change most. The rest is in the YAML beside it. */
export function Form() {
  const { editing } = useForm();
  const { spec } = editing;
  return (
    <Stack gap="md">
      <Fieldset legend="Run">
        <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
          <TextField label="Name" path={["metadata", "name"]} whole />
          <TextField label="Duration" path={["duration"]} placeholder="until it is stopped" />
          <TextField label="Seed" path={["seed"]} number />
          <TextField label="Scenario" path={["scenario", "ref"]} emptied={["scenario"]} placeholder="none: nobody moves" />
          <TextField label="Drain up to" path={["drain", "max"]} emptied={editing.emptied(["drain", "max"])} />
          <TextField label="Quiet for" path={["drain", "quietFor"]} emptied={editing.emptied(["drain", "quietFor"])} />
          <NamesField label="Captures" path={["collect", "captures"]} options={namesOf(spec.networks)} emptied={editing.emptied(["collect", "captures"])} optional within placeholder="none" />
        </SimpleGrid>
        <Errors of={[["drain"], ["collect"]]} />
      </Fieldset>
      <Fieldset legend="Networks">
        <Stack>
          {listOf(spec.networks).map((_, place) => (
            <NetworkFields key={place} place={place} />
          ))}
          <Group>
            <EditButton edits={() => editing.addNetwork()}>Add a network</EditButton>
          </Group>
        </Stack>
      </Fieldset>
      <Fieldset legend="Nodes">
        <Stack>
          {listOf(spec.nodes).map((_, place) => (
            <NodeFields key={place} place={place} />
          ))}
          <Group>
            <EditButton edits={() => editing.addNode()}>Add a node</EditButton>
          </Group>
        </Stack>
      </Fieldset>
      <Fieldset legend="Apps">
        <Stack>
          {listOf(spec.apps).map((_, place) => (
            <AppFields key={place} place={place} />
          ))}
          <Group>
            <AddApp />
          </Group>
        </Stack>
      </Fieldset>
      <Fieldset legend="Timeline">
        <TimelineFields />
      </Fieldset>
    </Stack>
  );
}

function AddApp() {
  const { editing, edit } = useForm();
  const kinds = [["both", "Publisher and subscriber"], ["publisher", "Publisher"], ["subscriber", "Subscriber"], ["messaging", "Messaging service"], ["script", "Script of messages"], ["mgen", "Flows of MGEN"], ["proxy", "Pair of proxies"], ["mqttsnGateway", "Gateway of MQTT-SN"], ["mediator", "Mediator"], ...brokers.map((kind) => [kind, `Broker ${kind}`]), ["own", "Own image"]];
  return (
    <Menu>
      <Menu.Target>
        <Button variant="default" size="xs">
          Add an app
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {kinds.map(([kind = "", label]) => (
          <Menu.Item
            key={kind}
            onClick={() => {
              edit(editing.addApp(kind));
            }}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
