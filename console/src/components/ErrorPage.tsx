import { Button, Container, Stack, Title } from "@mantine/core";
import type { ErrorComponentProps } from "@tanstack/react-router";
import { Trouble } from "./Trouble";

/** ErrorPage is shown instead of a page that failed. */
export function ErrorPage({ error, reset }: ErrorComponentProps) {
  return (
    <Container>
      <Stack align="start">
        <Title order={1}>This page failed</Title>
        <Trouble error={error} title="What went wrong" />
        <Button onClick={reset}>Try again</Button>
      </Stack>
    </Container>
  );
}
