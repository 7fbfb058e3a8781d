import { Text } from "@mantine/core";

export default function TerminalTab() {
  return <Text>Not available yet.</Text>;
}
