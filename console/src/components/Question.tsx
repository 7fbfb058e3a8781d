import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Trouble } from "./Trouble";

interface QuestionProps {
  /** button that asks, and that says yes. */
  button: string;
  title: string;
  what: string;
  /** onYes does it, and calls done when it is done. */
  onYes: (done: () => void) => void;
  isPending?: boolean;
  error?: Error | null;
  /** trouble is the title of the error. */
  trouble?: string;
}

/** Question asks before something is done that cannot be undone. */
export function Question({ button, title, what, onYes, isPending = false, error = null, trouble = "That was refused" }: QuestionProps) {
  const [open, { open: ask, close }] = useDisclosure(false);
  return (
    <>
      <Button size="xs" variant="default" onClick={ask}>
        {button}
      </Button>
      <Modal opened={open} onClose={close} title={title} closeButtonProps={{ "aria-label": "Close" }}>
        <Stack>
          <Text>{what}</Text>
          <Trouble error={error} title={trouble} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close} data-autofocus>
              Cancel
            </Button>
            <Button loading={isPending} onClick={() => { onYes(close); }}>
              {button}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}

interface Mutation {
  mutate: (variables: undefined, options: { onSuccess: () => void }) => void;
  isPending: boolean;
  error: Error | null;
}

/** answering is what a Question needs of a mutation that it does. */
export function answering({ mutate, isPending, error }: Mutation) {
  return { onYes: (onSuccess: () => void) => { mutate(undefined, { onSuccess }); }, isPending, error };
}
