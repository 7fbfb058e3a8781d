import { SimpleGrid, Text } from "@mantine/core";
import { namesOf } from "../text/complete";
import { at, fieldsOf, listOf, wordOf, type Path } from "../text/values";
import { useForm } from "./context";
import { ChoiceField, Errors, TextField, YesNoField } from "./fields";

/** ProxyFields are those of one of two HTTP proxies. The far one has no settings: it takes those of the near one. */
export function ProxyFields({ app }: { app: number }) {
  const { editing } = useForm();
  const path: Path = ["apps", app, "proxy"];
  const proxy = fieldsOf(at(editing.spec, path));
  const apps = listOf(editing.spec.apps).map(fieldsOf);
  const name = wordOf(at(editing.spec, ["apps", app, "name"]));
  const far = namesOf(apps.filter((each) => each.proxy !== undefined && fieldsOf(each.proxy).peer === undefined)).filter((each) => each !== name);
  const near = namesOf(apps.filter((each) => wordOf(fieldsOf(each.proxy).peer).split("/").at(-1) === name));
  const hasSettings = Object.keys(proxy).length > 0;
  return (
    <>
      {!hasSettings && near.length > 0 && <Text size="sm">The far proxy of {near.join(", ")}, which has the settings of both.</Text>}
      <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
        <ChoiceField label="Far proxy" path={[...path, "peer"]} options={far} placeholder="none" />
        {hasSettings && (
          <>
            <ChoiceField label="Protocol" path={[...path, "protocol"]} placeholder="http (default)" />
            {(proxy.protocol === "amqp" || proxy.broker !== undefined) && <ChoiceField label="Broker at" path={[...path, "broker"]} options={namesOf(apps.filter((each) => each.rabbitmq !== undefined))} />}
            <ChoiceField label="Compression" path={[...path, "compression"]} placeholder="none (default)" />
            <TextField label="Deadline" path={[...path, "deadline"]} placeholder="5m" />
            <TextField label="Longest queue" path={[...path, "maxQueue"]} number placeholder="10000" />
            <YesNoField label="Log messages" path={[...path, "logMessages"]} placeholder="no" />
            <TextField label="Port" path={[...path, "port"]} number placeholder="3128" />
          </>
        )}
      </SimpleGrid>
      <Errors of={[path]} />
    </>
  );
}
