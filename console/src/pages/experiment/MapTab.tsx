import { Text } from "@mantine/core";

export default function MapTab() {
  return <Text>The map is not available yet.</Text>;
}
