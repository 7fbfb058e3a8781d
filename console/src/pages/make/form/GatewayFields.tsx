import { SimpleGrid } from "@mantine/core";
import { mqttBrokers } from "../../../components/brokers";
import { namesOf } from "../text/complete";
import { fieldsOf, listOf, type Path } from "../text/values";
import { useForm } from "./context";
import { ChoiceField, TextField } from "./fields";

/** GatewayFields are those of a gateway from MQTT-SN to a broker of MQTT. */
export function GatewayFields({ app }: { app: number }) {
  const { editing } = useForm();
  const path: Path = ["apps", app, "mqttsnGateway"];
  const apps = listOf(editing.spec.apps).map(fieldsOf);
  return (
    <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
      <ChoiceField label="Broker at" path={[...path, "to"]} options={namesOf(apps.filter((each) => mqttBrokers.some((kind) => each[kind] !== undefined)))} />
      <ChoiceField label="Mode" path={[...path, "mode"]} />
      <TextField label="Most clients" path={[...path, "maxClients"]} number />
      <TextField label="Advertise every" path={[...path, "advertise"]} placeholder="never" />
    </SimpleGrid>
  );
}
