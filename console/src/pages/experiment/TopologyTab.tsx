import { Text } from "@mantine/core";

export default function TopologyTab() {
  return <Text>Not available yet.</Text>;
}
