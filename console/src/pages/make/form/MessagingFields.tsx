import { Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { namesOf } from "../text/complete";
import { at, fieldsOf, listOf, wordOf, type Path } from "../text/values";
import { useForm } from "./context";
import { EditButton } from "./EditButton";
import { ChoiceField, Errors, NamesField, TextField, YesNoField } from "./fields";
import { nodeNames, nodesOf } from "./nodes";
import { RemoveButton } from "./RemoveButton";
import { portOf, sourceOf, sources, takes, type Source } from "./requests";

const payloads = ["geojson", "nffi", "nffi:5", "gps", "image:10000", "bytes:200"];

/** MessagingFields are those of a messaging service: how it is reached, what it answers and what it asks. */
export function MessagingFields({ app }: { app: number }) {
  const { editing, edit } = useForm();
  const path: Path = ["apps", app, "messaging"];
  const messaging = fieldsOf(at(editing.spec, path));
  const transport = wordOf(messaging.transport);
  const has = (setting: string) => takes(transport, setting) || messaging[setting] !== undefined;
  const proxies = namesOf(listOf(editing.spec.apps).map(fieldsOf).filter((each) => fieldsOf(each.proxy).peer !== undefined));
  const inside = (object: string, field: string) => ({ path: [...path, object, field], emptied: editing.emptied([...path, object, field]) });
  const source = sourceOf(messaging);
  return (
    <Stack gap="xs">
      <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
        <ChoiceField label="Transport" path={[...path, "transport"]} optional={false} onChoose={(word) => { edit(editing.useTransport(app, word)); }} />
        <TextField label="Port" path={[...path, "port"]} number placeholder={portOf(transport)} />
        <ChoiceField label="Encoding" path={[...path, "encoding"]} placeholder="the model's own" />
        <ChoiceField label="Compression" path={[...path, "compression"]} placeholder="none (default)" />
        {has("receipt") && <YesNoField label="Receipts" path={[...path, "receipt"]} placeholder="yes" />}
        <TextField label="Timeout" path={[...path, "timeout"]} />
        <TextField label="Reply" path={[...path, "reply"]} suggestions={payloads} placeholder="an empty receipt" />
        {has("via") && <ChoiceField label="Via proxy" path={[...path, "via"]} options={proxies} placeholder="none" />}
        {has("http") && <ChoiceField label="Connections" {...inside("http", "connections")} placeholder="Persistent (default)" />}
        {has("coap") && (
          <>
            <YesNoField label="Confirmable" {...inside("coap", "confirmable")} placeholder="yes" />
            <TextField label="ACK timeout" {...inside("coap", "ackTimeout")} />
            <TextField label="Repetitions" {...inside("coap", "maxRetransmit")} number />
          </>
        )}
        {has("soap") && <ChoiceField label="Envelope" {...inside("soap", "envelope")} placeholder="XML (default)" />}
        {has("multicast") && <YesNoField label="Multicast" path={[...path, "multicast"]} placeholder="no" />}
        {(messaging.multicast === true || messaging.network !== undefined) && <ChoiceField label="Multicast network" path={[...path, "network"]} options={namesOf(editing.spec.networks)} placeholder="the node's first" />}
        <ChoiceField
          label="Requests"
          path={path}
          options={Object.values(sources)}
          placeholder="none"
          shown={source ? sources[source] : ""}
          onChoose={(words) => { edit(editing.useSource(app, (Object.keys(sources) as Source[]).find((each) => sources[each] === words))); }}
        />
      </SimpleGrid>
      <Errors of={["http", "coap", "soap", "model"].map((object) => [...path, object])} />
      {source === "push" && <PushFields app={app} path={[...path, "push"]} />}
      {source === "messages" && <ScriptFields app={app} path={[...path, "messages"]} />}
      {source === "configMap" && (
        <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
          <TextField label="ConfigMap" path={[...path, "configMap", "name"]} />
          <TextField label="Key" path={[...path, "configMap", "key"]} placeholder="messages.csv" />
        </SimpleGrid>
      )}
    </Stack>
  );
}

/** useAddressees are the nodes and groups that run an app. */
function useAddressees(app: number): string[] {
  const { spec } = useForm().editing;
  return nodeNames(nodesOf(spec, wordOf(at(spec, ["apps", app, "name"]))));
}

function PushFields({ app, path }: { app: number; path: Path }) {
  const names = useAddressees(app);
  return (
    <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
      <NamesField label="From" path={[...path, "from"]} options={names} optional within placeholder="all" />
      <TextField label="To" path={[...path, "to"]} suggestions={["all", ...names]} />
      <TextField label="Period" path={[...path, "period"]} />
      <TextField label="Payload" path={[...path, "payload"]} suggestions={payloads} placeholder="geojson" />
      <TextField label="Lead" path={[...path, "lead"]} />
      <ChoiceField label="Phase" path={[...path, "phase"]} />
    </SimpleGrid>
  );
}

const mostMessages = 10;

/** ScriptFields are the messages of a script, as many as a form can show. */
function ScriptFields({ app, path }: { app: number; path: Path }) {
  const { editing } = useForm();
  const names = useAddressees(app);
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
              <TextField label="From" path={[...path, place, "from"]} suggestions={names} />
              <TextField label="To" path={[...path, place, "to"]} suggestions={["all", ...names]} />
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
