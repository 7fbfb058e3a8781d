import { Text } from "@mantine/core";

export default function EventsTab() {
  return <Text>Not available yet.</Text>;
}
