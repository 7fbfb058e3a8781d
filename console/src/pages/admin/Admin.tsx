import { Title } from "@mantine/core";

export function Admin() {
  return <Title order={1}>Administration</Title>;
}
