// A PEM text, pasted into a field or chosen as a file. Of a file only the name is shown.

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { byteCount } from "../words.ts";
import { Button, Note } from "./pieces.tsx";

export type PemText = {
  readonly text: string;
  /** Where the text is from, if it was not typed here. */
  readonly file: string | undefined;
};

/** A chain and its key are some 10 kB; whatever is much longer is another file. */
const fileBytesMax = 262_144;

export function PemField({
  label,
  value: { text, file },
  onGiven,
  hint,
  isSecret = false,
}: {
  readonly label: string;
  readonly value: PemText;
  readonly onGiven: (given: PemText) => void;
  readonly hint?: string;
  readonly isSecret?: boolean;
}): JSX.Element {
  const id = useId();
  const [fault, setFault] = useState<string>();
  const choose = (chosen: File | undefined): void => {
    setFault(undefined);
    if (chosen === undefined) return;
    if (chosen.size > fileBytesMax) {
      setFault(`${chosen.name} has ${byteCount(chosen.size)}: that is no PEM file`);
      return;
    }
    chosen.text().then(
      (read) => onGiven({ text: read, file: chosen.name }),
      () => setFault(`${chosen.name} could not be read`),
    );
  };
  return (
    <div class="field">
      <label for={file === undefined ? id : undefined} id={`${id}-label`}>
        {label}
      </label>
      {file === undefined ? (
        <textarea
          id={id}
          class={isSecret ? "veiled" : undefined}
          rows={4}
          value={text}
          spellcheck={false}
          autocomplete="off"
          aria-describedby={hint === undefined ? undefined : `${id}-hint`}
          onInput={({ currentTarget }) => onGiven({ text: currentTarget.value, file })}
        />
      ) : (
        <div class="row" role="group" aria-labelledby={`${id}-label`}>
          <span class="mono">{file}</span>
          <Button
            label={`Take ${file} away from ${label}`}
            onClick={() => onGiven({ text: "", file: undefined })}
          >
            Another one
          </Button>
        </div>
      )}
      {hint !== undefined && (
        <small id={`${id}-hint`} class="quiet">
          {hint}
        </small>
      )}
      {file === undefined && (
        <input
          type="file"
          aria-label={`${label}: choose a file`}
          accept=".pem,.crt,.cer,.key,.txt"
          onChange={({ currentTarget }) => choose(currentTarget.files?.[0])}
        />
      )}
      {fault !== undefined && <Note tone="bad">{fault}</Note>}
    </div>
  );
}
