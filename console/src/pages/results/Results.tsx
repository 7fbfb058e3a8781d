import { Title } from "@mantine/core";

export function Results() {
  return <Title order={1}>Results</Title>;
}
