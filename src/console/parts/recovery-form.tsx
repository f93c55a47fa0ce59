// Asks for a mail with a link to a new token, for whoever has lost the one they had. Central answers the same whether there is such a user or not.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { send } from "../api.ts";
import { useDoing } from "../doing.ts";
import { Button, Note, RefusalNote, TextField } from "./pieces.tsx";

export function RecoveryForm({ name }: { readonly name: string }): JSX.Element {
  const [username, setUsername] = useState(name);
  const [email, setEmail] = useState("");
  const [isSent, setSent] = useState(false);
  const doing = useDoing();
  const start = (event: Event): void => {
    event.preventDefault();
    setSent(false);
    void doing.run(async () => {
      await send("POST", "/tokens/start-recovery/", {
        username: username.trim(),
        email: email.trim(),
      });
      setSent(true);
    });
  };
  return (
    <form onSubmit={start}>
      <p class="quiet">
        A mail with a link goes to the address in your profile. The link makes a new token; the
        tokens and the password that you had end then.
      </p>
      <TextField
        label="Your user name"
        value={username}
        onInput={setUsername}
        autocomplete="username"
        isRequired
      />
      <TextField
        label="Your e-mail address"
        type="email"
        value={email}
        onInput={setEmail}
        autocomplete="email"
        isRequired
      />
      <Button submits disabled={doing.isBusy}>
        Send me the link
      </Button>
      {isSent && (
        <Note tone="good">
          If a user has this name and this address, a mail is on its way. Its link works once, for
          an hour.
        </Note>
      )}
      <RefusalNote failure={doing.failure} />
    </form>
  );
}
