// Signing in: with a token of the API, or with name and password. Whoever has lost both asks for a mail.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { signIn } from "../api.ts";
import { useDoing } from "../doing.ts";
import { Opens } from "../parts/opens.tsx";
import { Button, Choices, TextField, Note, RefusalNote } from "../parts/pieces.tsx";
import { RecoveryForm } from "../parts/recovery-form.tsx";

type Way = "password" | "token";

export function SignIn({
  why,
  onDone,
}: {
  readonly why?: string;
  readonly onDone: () => void;
}): JSX.Element {
  const [way, setWay] = useState<Way>("password");
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [token, setToken] = useState("");
  const doing = useDoing();
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector("input")?.focus(), []);
  const submit = (event: Event): void => {
    event.preventDefault();
    const given = way === "token" ? { token: token.trim() } : { username, password };
    void doing.run(async () => {
      await signIn(given);
      onDone();
    });
  };
  return (
    <main class="sign-in">
      <h1>Sign in</h1>
      {!window.isSecureContext && (
        <Note tone="warn">
          This page was reached without TLS: browsers keep no session here. Use the https://
          address.
        </Note>
      )}
      {why !== undefined && <Note>{why}</Note>}
      <Choices
        label="How to sign in"
        value={way}
        options={[
          ["password", "Name and password"],
          ["token", "Token"],
        ]}
        onChange={setWay}
      />
      <form ref={form} class="panel" onSubmit={submit}>
        {way === "password" ? (
          <>
            <TextField
              label="Name"
              value={username}
              onInput={setUsername}
              autocomplete="username"
              isRequired
            />
            <TextField
              label="Password"
              type="password"
              value={password}
              onInput={setPassword}
              autocomplete="current-password"
              isRequired
            />
          </>
        ) : (
          <TextField
            label="Token"
            type="password"
            value={token}
            onInput={setToken}
            isRequired
            hint="The session may do what the token may, as long as the token is in force."
          />
        )}
        <Button kind="main" submits disabled={doing.isBusy}>
          Sign in
        </Button>
        <RefusalNote failure={doing.failure} />
      </form>
      <Opens title="Lost your token or password?">{() => <RecoveryForm name={username} />}</Opens>
      <p class="quiet">
        <a href="/presentation-api/v1/docs/">The API</a> · <a href="/about/">About this central</a>
      </p>
    </main>
  );
}
