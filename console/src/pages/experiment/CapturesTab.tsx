import { Text } from "@mantine/core";

export default function CapturesTab() {
  return <Text>Not available yet.</Text>;
}
