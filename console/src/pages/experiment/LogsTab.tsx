import { Text } from "@mantine/core";

export default function LogsTab() {
  return <Text>Not available yet.</Text>;
}
