import { Alert, Button, Stack, Text } from "@mantine/core";
import { Refusal } from "../kubernetes/client";

/** Trouble shows why something could not be read or written. Only a Refusal has words for people. */
export function Trouble({ error, title = "This could not be read" }: { error: unknown; title?: string }) {
  if (error === null || error === undefined) return null;
  return (
    <Alert color="orange" title={title} role="alert">
      {error instanceof Refusal ? error.message : <OwnFailure />}
    </Alert>
  );
}

function OwnFailure() {
  return (
    <Stack gap="xs" align="start">
      <Text inherit>The page itself failed. It may be older than its server: load it again.</Text>
      <Button
        size="compact-sm"
        variant="default"
        onClick={() => {
          window.location.reload();
        }}
      >
        Reload
      </Button>
    </Stack>
  );
}
