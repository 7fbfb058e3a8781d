import { Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { mqttBrokers } from "../../../components/brokers";
import { namesOf } from "../text/complete";
import { at, fieldsOf, listOf, wordOf, type Path } from "../text/values";
import { useForm } from "./context";
import { EditButton } from "./EditButton";
import { ChoiceField, Errors, TextField } from "./fields";
import { nodeNames, nodesOf } from "./nodes";
import { RemoveButton } from "./RemoveButton";
import { beginningOf } from "./requests";

/** ScriptFields are those of an app that sends and receives the messages of a script. */
export function ScriptFields({ app }: { app: number }) {
  const { editing, edit } = useForm();
  const path: Path = ["apps", app, "script"];
  const script = fieldsOf(at(editing.spec, path));
  const hasBroker = script.protocol !== "mqtt-udp";
  const brokers = listOf(editing.spec.apps).map(fieldsOf).filter((each) => mqttBrokers.some((kind) => each[kind] !== undefined));
  return (
    <Stack gap="xs">
      <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
        <ChoiceField label="Protocol" path={[...path, "protocol"]} options={["mqtt", "mqtt-udp"]} optional={false} onChoose={(word) => { edit(editing.useScriptProtocol(app, word)); }} />
        {(hasBroker || script.to !== undefined) && <ChoiceField label="Broker at" path={[...path, "to"]} options={namesOf(brokers)} />}
        {(hasBroker || script.qos !== undefined) && <ChoiceField label="QoS" path={[...path, "qos"]} options={["0", "1", "2"]} number />}
        {(!hasBroker || script.network !== undefined) && <ChoiceField label="Network" path={[...path, "network"]} options={namesOf(editing.spec.networks)} placeholder="the node's first" />}
        <GivenFields path={path} here="messages" words="Messages" beginning={beginningOf("messages", editing.firstNode(app))} example="messages.csv" />
      </SimpleGrid>
      {script.messages !== undefined && <MessageFields app={app} path={[...path, "messages"]} />}
    </Stack>
  );
}

/** MGENFields are those of a script of MGEN, in lines. Its object is an app's mgen, or a publisher's pattern. */
export function MGENFields({ path, here, beginning }: { path: Path; here: "script" | "mgen"; beginning: string }) {
  const { editing } = useForm();
  return (
    <Stack gap="xs">
      <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
        <GivenFields path={path} here={here} words="Script" beginning={beginning} example="flows.mgn" />
      </SimpleGrid>
      {at(editing.spec, [...path, "configMap"]) === undefined && <TextField label="Script" path={[...path, here]} long />}
    </Stack>
  );
}

/** GivenFields choose whether something stands in the text itself, or under a key of a ConfigMap. */
function GivenFields({ path, here, words, beginning, example }: { path: Path; here: string; words: string; beginning: unknown; example: string }) {
  const { editing, edit } = useForm();
  const isElsewhere = at(editing.spec, [...path, "configMap"]) !== undefined;
  return (
    <>
      <ChoiceField
        label="Given by"
        path={path}
        options={[words, "ConfigMap"]}
        optional={false}
        shown={isElsewhere ? "ConfigMap" : words}
        onChoose={(word) => {
          edit(word === words ? editing.turn(path, "configMap", here, beginning) : editing.turn(path, here, "configMap", { name: "", key: example }));
        }}
      />
      {isElsewhere && <ConfigMapFields path={path} example={example} />}
    </>
  );
}

/** ConfigMapFields name a ConfigMap and a key in it. */
export function ConfigMapFields({ path, example }: { path: Path; example: string }) {
  return (
    <>
      <TextField label="ConfigMap" path={[...path, "configMap", "name"]} />
      <TextField label="Key" path={[...path, "configMap", "key"]} placeholder={example} />
    </>
  );
}

/** useAddressees are the nodes and groups that run an app, and those that its requests are for: they run its server, if it has one. */
export function useAddressees(app: number): { senders: string[]; addressees: string[] } {
  const { spec } = useForm().editing;
  const { name, messaging } = fieldsOf(at(spec, ["apps", app]));
  const names = (of: string) => nodeNames(nodesOf(spec, of));
  return { senders: names(wordOf(name)), addressees: names(wordOf(fieldsOf(messaging).server) || wordOf(name)) };
}

const mostMessages = 10;

/** MessageFields are the messages of a script, as many as a form can show. */
export function MessageFields({ app, path }: { app: number; path: Path }) {
  const { editing } = useForm();
  const { senders, addressees } = useAddressees(app);
  const messages = listOf(at(editing.spec, path)).map(fieldsOf);
  const last = messages.at(-1);
  const more = messages.length - mostMessages;
  return (
    <Stack gap="xs">
      {messages.slice(0, mostMessages).map((message, place) => (
        <Group key={place} align="end" wrap="nowrap" gap="xs" role="group" aria-label={`message ${place + 1}`}>
          <Stack gap={0} flex={1} miw={0}>
            <SimpleGrid cols={{ base: 2, md: 4 }} spacing="xs">
              <TextField label="At" path={[...path, place, "at"]} />
              <TextField label="From" path={[...path, place, "from"]} suggestions={senders} />
              <TextField label="To" path={[...path, place, "to"]} suggestions={["all", ...addressees]} />
              <TextField label="Text" path={[...path, place, "text"]} />
            </SimpleGrid>
            <Errors of={[[...path, place]]} />
          </Stack>
          <RemoveButton list={path} place={place} what={`message ${place + 1}, at ${wordOf(message.at)}`} />
        </Group>
      ))}
      {more > 0 && <Text size="sm">{more} more in the YAML.</Text>}
      <Group>
        <EditButton size="compact-xs" edits={() => editing.add(path, { at: wordOf(last?.at), from: wordOf(last?.from), to: wordOf(last?.to), text: "" })}>
          Add a message
        </EditButton>
      </Group>
    </Stack>
  );
}
