import { SimpleGrid, Stack } from "@mantine/core";
import { namesOf } from "../text/complete";
import { at, fieldsOf, listOf, wordOf, type Path } from "../text/values";
import { useForm } from "./context";
import { ChoiceField, Errors, NamesField, TextField, YesNoField } from "./fields";
import { portOf, sourceOf, sources, takes, type Source } from "./requests";
import { ConfigMapFields, MessageFields, useAddressees } from "./ScriptFields";

const payloads = ["geojson", "nffi", "nffi:5", "gps", "image:10000", "bytes:200"];

/** MessagingFields are those of a messaging service: how it is reached, what it answers and what it asks. */
export function MessagingFields({ app }: { app: number }) {
  const { editing, edit } = useForm();
  const path: Path = ["apps", app, "messaging"];
  const messaging = fieldsOf(at(editing.spec, path));
  const transport = wordOf(messaging.transport);
  const has = (setting: string) => takes(messaging, setting) || messaging[setting] !== undefined;
  const apps = listOf(editing.spec.apps).map(fieldsOf);
  const proxies = namesOf(apps.filter((each) => fieldsOf(each.proxy).peer !== undefined));
  const servers = namesOf(apps.filter((each) => each.image !== undefined || each.command !== undefined));
  const inside = (object: string, field: string) => ({ path: [...path, object, field], emptied: editing.emptied([...path, object, field]) });
  const source = sourceOf(messaging);
  return (
    <Stack gap="xs">
      <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
        <ChoiceField label="Transport" path={[...path, "transport"]} optional={false} onChoose={(word) => { edit(editing.useTransport(app, word)); }} />
        <TextField label="Port" path={[...path, "port"]} number placeholder={portOf(transport)} />
        <ChoiceField label="Server" path={[...path, "server"]} options={servers} placeholder="none: they call each other" onChoose={(name) => { edit(editing.useServer(app, name)); }} />
        {(messaging.server ?? messaging.path) !== undefined && <TextField label="Path" path={[...path, "path"]} placeholder="/messages" />}
        <ChoiceField label="Encoding" path={[...path, "encoding"]} placeholder="the model's own" />
        <ChoiceField label="Compression" path={[...path, "compression"]} placeholder="none (default)" />
        {has("receipt") && <YesNoField label="Receipts" path={[...path, "receipt"]} placeholder="yes" />}
        <TextField label="Timeout" path={[...path, "timeout"]} />
        {has("reply") && <TextField label="Reply" path={[...path, "reply"]} suggestions={payloads} placeholder="an empty receipt" />}
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
      {source === "messages" && <MessageFields app={app} path={[...path, "messages"]} />}
      {source === "configMap" && (
        <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
          <ConfigMapFields path={path} example="messages.csv" />
        </SimpleGrid>
      )}
    </Stack>
  );
}

function PushFields({ app, path }: { app: number; path: Path }) {
  const { senders, addressees } = useAddressees(app);
  return (
    <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
      <NamesField label="From" path={[...path, "from"]} options={senders} optional within placeholder="all" />
      <TextField label="To" path={[...path, "to"]} suggestions={["all", ...addressees]} />
      <TextField label="Period" path={[...path, "period"]} />
      <TextField label="Payload" path={[...path, "payload"]} suggestions={payloads} placeholder="geojson" />
      <TextField label="Lead" path={[...path, "lead"]} />
      <ChoiceField label="Phase" path={[...path, "phase"]} />
    </SimpleGrid>
  );
}
