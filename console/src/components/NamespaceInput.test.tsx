import { MantineProvider } from "@mantine/core";
import { fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
import { expect, test } from "vitest";
import { NamespaceInput } from "./NamespaceInput";

function Page({ taken }: { taken: string[] }) {
  const [namespace, setNamespace] = useState("team-nor");
  const take = (name: string) => {
    taken.push(name);
    setNamespace(name);
  };
  return (
    <MantineProvider env="test">
      <NamespaceInput namespace={namespace} known={[namespace]} onChange={take} />
    </MantineProvider>
  );
}

test("a namespace counts when it is written to its end, and the field stays where one types", () => {
  const taken: string[] = [];
  render(<Page taken={taken} />);
  const field = screen.getByRole<HTMLInputElement>("combobox", { name: "Namespace" });
  field.focus();
  for (const value of ["t", "te", "team-s"]) fireEvent.change(field, { target: { value } });
  expect(taken).toEqual([]);
  fireEvent.keyDown(field, { key: "Enter" });
  expect(taken).toEqual(["team-s"]);
  expect(document.activeElement).toBe(field);
  expect(field.value).toBe("team-s");
});

test("leaving the field takes the name, and an empty one leaves what was there", () => {
  const taken: string[] = [];
  render(<Page taken={taken} />);
  const field = screen.getByRole<HTMLInputElement>("combobox", { name: "Namespace" });
  fireEvent.change(field, { target: { value: "" } });
  fireEvent.blur(field);
  expect(field.value).toBe("team-nor");
  fireEvent.change(field, { target: { value: "team-s" } });
  fireEvent.blur(field);
  expect(taken).toEqual(["team-s"]);
});
