import { Autocomplete, Input, MultiSelect, NativeSelect, TagsInput, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { isExact } from "../../../components/exact";
import { wordsAt } from "../text/findings";
import { choicesAt, schemaAt } from "../text/schema";
import { at, listOf, wordOf, wordsOf, type Path } from "../text/values";
import { useForm } from "./context";
import type { Named } from "./references";

interface FieldProps {
  label: string;
  /** path within the experiment's spec, or within the object if it is whole. */
  path: Path;
  whole?: boolean;
  /** within: errors of fields inside are shown too. */
  within?: boolean;
  number?: boolean;
  suggestions?: string[];
  placeholder?: string;
  /** emptied is what goes with the last word, if that is more than the field itself. */
  emptied?: Path | undefined;
}

function useField({ path, whole = false, within = false, emptied = path }: Pick<FieldProps, "path" | "whole" | "within" | "emptied">) {
  const { editing, findings, schemas, edit } = useForm();
  const full = whole ? path : editing.path(path);
  const { written } = editing;
  const schema = schemas && schemaAt(schemas, written.kind, full);
  const set = (value: unknown) => {
    edit([{ document: written.document, path: full, value }]);
  };
  const clear = () => {
    edit([{ document: written.document, path: whole ? emptied : editing.path(emptied), value: undefined }]);
  };
  return {
    value: at(written.object, full),
    error: wordsAt(findings, written.object, full, within),
    fallback: wordOf(schema?.default),
    choices: choicesAt(schemas, written.kind, full),
    set,
    clear,
    /** setOrClear takes the field away where it would be empty. */
    setOrClear: (isEmpty: boolean, value: unknown) => {
      if (isEmpty) clear();
      else set(value);
    },
  };
}

/** Errors are those of objects as wholes, which no field shows. */
export function Errors({ of }: { of: readonly Path[] }) {
  const { editing, findings } = useForm();
  const words = of.flatMap((path) => wordsAt(findings, editing.written.object, editing.path(path)) ?? []);
  return words.length > 0 && <Input.Error>{words.join("; ")}</Input.Error>;
}

/** TextField changes the document with every key. An emptied field is removed when it is left, so that it keeps its place meanwhile. A long one has lines. */
export function TextField({ label, number = false, long = false, suggestions, placeholder, onChanged, ...rest }: FieldProps & { long?: boolean; onChanged?: (before: string, after: string) => void }) {
  const { value, error, fallback, set, clear } = useField(rest);
  const [draft, setDraft] = useState<string>();
  const [before, setBefore] = useState("");
  const shown = draft ?? wordOf(value);
  const change = (word: string) => {
    if (draft === undefined) setBefore(shown);
    setDraft(word);
    if (word !== "") set(number && /^-?\d+$/.test(word) && isExact(Number(word)) ? Number(word) : word);
  };
  const leave = () => {
    if (draft === "") clear();
    else if (draft !== undefined && draft !== before) onChanged?.(before, draft);
    setDraft(undefined);
  };
  const properties = { label, error, value: shown, placeholder: placeholder ?? fallback, onBlur: leave, spellCheck: false, autoComplete: "off" } as const;
  if (suggestions) return <Autocomplete {...properties} data={suggestions} onChange={change} filter={({ options }) => options} />;
  const Lines = long ? Textarea : TextInput;
  return (
    <Lines
      {...properties}
      {...(number && { inputMode: "numeric" })}
      {...(long && { rows: Math.min(Math.max(shown.split("\n").length, 3), 16) })}
      onChange={(event) => {
        change(event.currentTarget.value);
      }}
    />
  );
}

/** NameField is the name of an element, which all that name it follow when it is left. */
export function NameField({ list, place }: { list: Named; place: number }) {
  const { editing, edit } = useForm();
  return <TextField label="Name" path={[list, place, "name"]} onChanged={(before, after) => { edit(editing.renameReferences(list, before, after)); }} />;
}

/** ChoiceField has the words that the schema allows, or those that are given. */
export function ChoiceField({ label, options, number = false, optional = true, onChoose, shown: given, placeholder = "–", ...rest }: FieldProps & { options?: string[]; optional?: boolean; shown?: string; onChoose?: (word: string) => void }) {
  const { value, error, fallback, choices, setOrClear } = useField(rest);
  const shown = given ?? wordOf(value);
  const words = options ?? choices;
  const data = [...(optional || shown === "" ? [{ value: "", label: fallback === "" ? placeholder : `${fallback} (default)` }] : []), ...new Set(shown === "" || words.includes(shown) ? words : [shown, ...words])];
  return (
    <NativeSelect
      label={label}
      error={error}
      value={shown}
      data={data}
      onChange={(event) => {
        const word = event.currentTarget.value;
        if (onChoose) onChoose(word);
        else setOrClear(word === "", number ? Number(word) : word);
      }}
    />
  );
}

/** YesNoField is a truth value; the placeholder says what holds without it. */
export function YesNoField({ label, placeholder, ...rest }: FieldProps) {
  const { value, error, fallback, setOrClear } = useField(rest);
  const usual = placeholder ?? yesOrNo(fallback);
  const shown = yesOrNo(wordOf(value));
  return (
    <NativeSelect
      label={label}
      error={error}
      value={shown}
      data={[{ value: "", label: usual === "" ? "–" : `${usual} (default)` }, ...new Set(["yes", "no", ...(shown === "" ? [] : [shown])])]}
      onChange={(event) => {
        const word = event.currentTarget.value;
        setOrClear(word === "", word === "yes");
      }}
    />
  );
}

function yesOrNo(word: string): string {
  return word === "true" ? "yes" : word === "false" ? "no" : word;
}

/** NamesField has several of some names. Without any an optional list goes. */
export function NamesField({ label, options, optional = false, placeholder, ...rest }: FieldProps & { options: string[]; optional?: boolean }) {
  const { value, error, setOrClear } = useField(rest);
  const shown = [...new Set(wordsOf(value))];
  return (
    <MultiSelect
      label={label}
      error={error}
      value={shown}
      data={[...new Set([...options, ...shown])]}
      onChange={(names) => {
        setOrClear(optional && names.length === 0, names);
      }}
      checkIconPosition="right"
      searchable={options.length > 12}
      limit={100}
      {...(shown.length === 0 && placeholder !== undefined && { placeholder })}
    />
  );
}

/** WordsField has any words. Without any an optional list goes. */
export function WordsField({ label, optional = false, placeholder, ...rest }: FieldProps & { optional?: boolean }) {
  const { value, error, setOrClear } = useField(rest);
  const change = (words: string[]) => {
    setOrClear(optional && words.length === 0, words);
  };
  const words = wordsOf(value);
  return <TagsInput label={label} error={error} value={words} onChange={change} splitChars={[" "]} {...(words.length === 0 && placeholder !== undefined && { placeholder })} />;
}

/** LinesField is a list of words, one on a line. What lines cannot show is for the YAML. */
export function LinesField({ label, ...rest }: FieldProps) {
  const { value, error, set, clear } = useField(rest);
  const [draft, setDraft] = useState<string>();
  const lines = listOf(value).map(wordOf);
  const isShown = lines.every((line) => !line.includes("\n")) && lines.at(-1) !== "";
  const change = (text: string) => {
    setDraft(text);
    const words = text.replace(/\n+$/, "").split("\n");
    if (words.join("") !== "") set(words);
  };
  const leave = () => {
    if (draft !== undefined && draft.trim() === "") clear();
    setDraft(undefined);
  };
  return (
    <Textarea
      label={label}
      description={isShown ? "An argument a line" : "An argument has several lines: change it in the YAML."}
      error={error}
      value={draft ?? lines.join("\n")}
      readOnly={!isShown}
      rows={4}
      resize="vertical"
      onBlur={leave}
      spellCheck={false}
      onChange={(event) => {
        change(event.currentTarget.value);
      }}
    />
  );
}
