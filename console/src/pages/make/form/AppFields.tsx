import { Group, Paper, SimpleGrid, Stack, Text } from "@mantine/core";
import { namesOf } from "../text/complete";
import { at, fieldsOf, listOf, wordOf, type Path } from "../text/values";
import { brokers } from "../../../components/brokers";
import { brokerOf, kindOf, newFlows, newPattern } from "./actions";
import { useForm } from "./context";
import { ChoiceField, Errors, NameField, TextField, WordsField } from "./fields";
import { GatewayFields } from "./GatewayFields";
import { MediatorFields } from "./MediatorFields";
import { MessagingFields } from "./MessagingFields";
import { OwnFields } from "./OwnFields";
import { ProxyFields } from "./ProxyFields";
import { RemoveButton } from "./RemoveButton";
import { MGENFields, ScriptFields } from "./ScriptFields";

const payloads = ["geojson", "geojson-ids", "nffi", "nffi-long", "gps", "image:10000", "bytes:200"];

const sendings = { period: "each period", pattern: "a pattern" } as const;

/** AppFields are those of an app: by its kind. */
export function AppFields({ place }: { place: number }) {
  const { editing, edit } = useForm();
  const path: Path = ["apps", place];
  const app = fieldsOf(at(editing.spec, path));
  const broker = brokerOf(app);
  const runs = listOf(editing.spec.nodes).some((node) => listOf(fieldsOf(node).apps).includes(app.name));
  return (
    <Paper withBorder p="xs">
      <Stack gap="xs">
        <Group justify="space-between" wrap="nowrap">
          <Text>
            <Text span fw={600}>
              {wordOf(app.name) || `App ${place + 1}`}
            </Text>{" "}
            <Text span c="dimmed" size="sm">
              {kindOf(app)}
            </Text>
          </Text>
          <RemoveButton list={["apps"]} place={place} what={`app ${wordOf(app.name)}`} />
        </Group>
        {!runs && <Text size="sm">No node runs this app. Choose it at Apps of a node.</Text>}
        <SimpleGrid cols={{ base: 2, md: 4 }} spacing="xs">
          <NameField list="apps" place={place} />
          {(app.publisher ?? app.subscriber ?? app.image ?? app.command ?? app.instances) !== undefined && <TextField label="Instances" path={[...path, "instances"]} number />}
          {broker && (
            <ChoiceField
              label="Broker"
              path={[...path, "kind"]}
              options={[broker, ...brokers.filter((kind) => kind !== broker)]}
              optional={false}
              shown={broker}
              onChoose={(kind) => {
                edit(editing.useBroker(place, kind));
              }}
            />
          )}
          {broker === "zeromqBroker" && <ChoiceField label="Transport" path={[...path, broker, "transport"]} />}
        </SimpleGrid>
        {(app.publisher !== undefined || app.subscriber !== undefined) && <ClientFields place={place} />}
        {fieldsOf(app.publisher).pattern !== undefined && <MGENFields path={[...path, "publisher", "pattern"]} here="mgen" beginning={newPattern} />}
        <Errors of={[path, [...path, "publisher"], [...path, "subscriber"]]} />
        {app.messaging !== undefined && <MessagingFields app={place} />}
        {app.script !== undefined && <ScriptFields app={place} />}
        {app.mgen !== undefined && <MGENFields path={[...path, "mgen"]} here="script" beginning={newFlows(editing.firstNode(place))} />}
        {app.mediator !== undefined && <MediatorFields app={place} />}
        {app.proxy !== undefined && <ProxyFields app={place} />}
        {app.mqttsnGateway !== undefined && <GatewayFields app={place} />}
        {(app.image !== undefined || app.command !== undefined) && <OwnFields app={place} />}
      </Stack>
    </Paper>
  );
}

function ClientFields({ place }: { place: number }) {
  const { editing, edit } = useForm();
  const path: Path = ["apps", place];
  const app = fieldsOf(at(editing.spec, path));
  const part = app.publisher !== undefined ? "publisher" : "subscriber";
  const publisher = fieldsOf(app.publisher);
  const by = publisher.pattern === undefined ? "period" : "pattern";
  const others = listOf(editing.spec.apps).map(fieldsOf).filter((each) => brokerOf(each) ?? each.mqttsnGateway);
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="xs">
      <ChoiceField
        label="Protocol"
        path={[...path, part, "protocol"]}
        optional={false}
        onChoose={(protocol) => {
          edit(editing.useProtocol(place, protocol));
        }}
      />
      <ChoiceField label="Broker at" path={[...path, part, "to"]} options={namesOf(others)} />
      {app.publisher !== undefined && (
        <>
          <ChoiceField label="QoS" path={[...path, "publisher", "qos"]} options={["0", "1", "2", "-1"]} number />
          <ChoiceField label="Messages" path={[...path, "publisher"]} options={Object.values(sendings)} optional={false} shown={sendings[by]} onChoose={(word) => { edit(editing.usePattern(place, word === sendings.pattern)); }} />
          {(by === "period" || publisher.period !== undefined) && <TextField label="Period" path={[...path, "publisher", "period"]} />}
          {(by === "period" || publisher.payload !== undefined) && <TextField label="Payload" path={[...path, "publisher", "payload"]} suggestions={payloads} />}
          <TextField label="Topic" path={[...path, "publisher", "topic"]} />
          <TextField label="Lead" path={[...path, "publisher", "lead"]} />
        </>
      )}
      {app.subscriber !== undefined && (
        <>
          <ChoiceField label={app.publisher === undefined ? "QoS" : "QoS received"} path={[...path, "subscriber", "qos"]} options={["0", "1", "2"]} number />
          <WordsField label="Topics" path={[...path, "subscriber", "topics"]} within />
        </>
      )}
    </SimpleGrid>
  );
}
