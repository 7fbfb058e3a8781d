import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render } from "@testing-library/react";
import type { ReactNode } from "react";
import { Editing } from "../pages/make/form/actions";
import { FormContext } from "../pages/make/form/context";
import { useText } from "../pages/make/hooks";
import type { Finding } from "../pages/make/text/findings";
import type { TextModel } from "../pages/make/text/model";
import type { Schemas } from "../pages/make/text/schema";
import "./patience";

function Form({ model, schemas, findings, children }: { model: TextModel; schemas: Schemas | undefined; findings: readonly Finding[]; children: ReactNode }) {
  const main = useText(model).readable.main;
  if (!main) return null;
  const edit = (edits: Parameters<TextModel["edit"]>[0]) => { model.edit(edits); };
  return <FormContext value={{ editing: new Editing(main), findings, schemas, edit }}>{children}</FormContext>;
}

/** openForm renders a part of the workshop's form on a text. Without schemas it knows no defaults and choices. */
export function openForm(model: TextModel, part: ReactNode, schemas?: Schemas, findings: readonly Finding[] = []) {
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <Form model={model} schemas={schemas} findings={findings}>{part}</Form>
      </QueryClientProvider>
    </MantineProvider>,
  );
}

/** fill a field at once: each key that is typed draws the form anew. */
export function fill(field: HTMLElement, value: string) {
  fireEvent.change(field, { target: { value } });
}
