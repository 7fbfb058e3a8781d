import { Text } from "@mantine/core";

export default function LiveTab() {
  return <Text>Not available yet.</Text>;
}
