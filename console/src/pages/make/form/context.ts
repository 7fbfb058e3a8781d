import { createContext, useContext } from "react";
import type { Edit } from "../text/edits";
import type { Finding } from "../text/findings";
import type { Schemas } from "../text/schema";
import type { Editing } from "./actions";

/** What the parts of a form share. */
export interface FormState {
  editing: Editing;
  findings: readonly Finding[];
  schemas: Schemas | undefined;
  edit: (edits: readonly Edit[]) => void;
}

export const FormContext = createContext<FormState | undefined>(undefined);

export function useForm(): FormState {
  const form = useContext(FormContext);
  if (!form) throw new Error("a field stands outside its form");
  return form;
}
