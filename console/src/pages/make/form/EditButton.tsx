import { Button, type ButtonProps } from "@mantine/core";
import type { Edit } from "../text/edits";
import { useForm } from "./context";

interface EditButtonProps extends Pick<ButtonProps, "size" | "mt"> {
  /** edits that a click makes. */
  edits: () => readonly Edit[];
  children: string;
}

/** EditButton edits the text, such as by one more element of a list. */
export function EditButton({ edits, children, size = "xs", mt }: EditButtonProps) {
  const { edit } = useForm();
  return (
    <Button
      variant="default"
      size={size}
      {...(mt !== undefined && { mt })}
      onClick={() => {
        edit(edits());
      }}
    >
      {children}
    </Button>
  );
}
