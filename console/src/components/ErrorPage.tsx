import { Anchor, Button, Container, Stack, Text, Title } from "@mantine/core";
import { Link, type ErrorComponentProps } from "@tanstack/react-router";
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

/** NoPage is shown at an address that the console does not have. */
export function NoPage() {
  return (
    <Container>
      <Stack align="start">
        <Title order={1}>There is no page at this address</Title>
        <Text>
          Look for a mistake in the address, or choose from all{" "}
          <Anchor underline="always" renderRoot={(props) => <Link {...props} to="/" />}>
            experiments
          </Anchor>
          .
        </Text>
      </Stack>
    </Container>
  );
}
