import { Title } from "@mantine/core";

export function Make() {
  return <Title order={1}>New experiment</Title>;
}
