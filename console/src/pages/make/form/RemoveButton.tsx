import { CloseButton } from "@mantine/core";
import { useForm } from "./context";

/** RemoveButton takes an element out of a list of the spec. */
export function RemoveButton({ list, place, what }: { list: string; place: number; what: string }) {
  const { editing, edit } = useForm();
  return (
    <CloseButton
      aria-label={`Remove ${what}`}
      title={`Remove ${what}`}
      onClick={() => {
        edit(editing.remove(list, place));
      }}
    />
  );
}
