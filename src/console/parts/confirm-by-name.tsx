// Asks before something whose loss would be felt: its name is typed, so that nobody deletes the neighbour.

import type { JSX } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { Button, TextField } from "./pieces.tsx";

export function ConfirmByName({
  name,
  doIt,
  question,
  disabled,
  onYes,
}: {
  readonly name: string;
  /** What the buttons say: "Delete www.example.com". */
  readonly doIt: string;
  readonly question: string;
  readonly disabled?: boolean;
  readonly onYes: () => void;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const id = useId();
  const submit = (event: Event): void => {
    event.preventDefault();
    if (typed.trim() !== name) return;
    dialog.current?.close();
    onYes();
  };
  return (
    <>
      <Button kind="danger" disabled={disabled} onClick={() => dialog.current?.showModal()}>
        {doIt}
      </Button>
      <dialog ref={dialog} aria-labelledby={id} onClose={() => setTyped("")}>
        <form onSubmit={submit}>
          <p id={id}>{question}</p>
          <TextField label={`Type ${name} to go on`} value={typed} onInput={setTyped} isRequired />
          <div class="row">
            <Button kind="danger" submits disabled={typed.trim() !== name}>
              {doIt}
            </Button>
            <Button onClick={() => dialog.current?.close()}>Leave it</Button>
          </div>
        </form>
      </dialog>
    </>
  );
}
