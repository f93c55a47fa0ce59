// The profile of whoever is signed in: names, mail address, and another password.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { UserProfile } from "../../wire/customer/user.ts";
import { at, Refusal, send } from "../api.ts";
import { useAsked } from "../asked.ts";
import { useDoing } from "../doing.ts";
import { useSession } from "../session.ts";
import { visibleText } from "../visible-text.ts";
import { Answer, Button, TextField, Note, Panel, RefusalNote, Time } from "./pieces.tsx";

export function ProfilePanel({ mayWrite }: { readonly mayWrite: boolean }): JSX.Element {
  const { user_id: id } = useSession();
  const path = at`/user-profile/${id}/`;
  const asked = useAsked<UserProfile>(path, { topics: ["customer"] });
  return (
    <Panel title="Your profile">
      <Answer asked={asked}>
        {(profile) => (
          <>
            <ProfileFacts profile={profile} />
            {mayWrite && (
              <div class="two">
                <NamesForm
                  key={JSON.stringify(profile)}
                  path={path}
                  profile={profile}
                  onDone={asked.again}
                />
                <PasswordForm path={path} username={profile.username} />
              </div>
            )}
          </>
        )}
      </Answer>
    </Panel>
  );
}

function ProfileFacts({ profile }: { readonly profile: UserProfile }): JSX.Element {
  const { username, first_name: first, last_name: last, email, date_joined: joined } = profile;
  const facts: readonly (readonly [string, string])[] = [
    ["User", username],
    ["Name", `${first} ${last}`.trim()],
    ["E-mail", email],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, text]) => (
        <>
          <dt>{name}</dt>
          <dd>{text === "" ? "–" : visibleText(text)}</dd>
        </>
      ))}
      <dt>Since</dt>
      <dd>
        <Time at={joined} />
      </dd>
    </dl>
  );
}

function NamesForm({
  path,
  profile,
  onDone,
}: {
  readonly path: string;
  readonly profile: UserProfile;
  readonly onDone: () => void;
}): JSX.Element {
  const [username, setUsername] = useState(profile.username);
  const [first, setFirst] = useState(profile.first_name);
  const [last, setLast] = useState(profile.last_name);
  const [email, setEmail] = useState(profile.email);
  const doing = useDoing();
  const save = (event: Event): void => {
    event.preventDefault();
    void doing.run(async () => {
      const body = { username, first_name: first, last_name: last, email: email.trim() };
      await send("PUT", path, body);
      onDone();
    });
  };
  return (
    <form onSubmit={save}>
      <h3>Name and address</h3>
      <TextField
        label="User name"
        value={username}
        onInput={setUsername}
        autocomplete="username"
        isRequired
        hint="You sign in with it."
      />
      <TextField label="First name" value={first} onInput={setFirst} autocomplete="given-name" />
      <TextField label="Last name" value={last} onInput={setLast} autocomplete="family-name" />
      <TextField
        label="E-mail"
        type="email"
        value={email}
        onInput={setEmail}
        autocomplete="email"
        hint="A lost token can be replaced by a mail to it."
      />
      <Button submits disabled={doing.isBusy}>
        Save the profile
      </Button>
      <RefusalNote failure={doing.failure} />
    </form>
  );
}

function PasswordForm({
  path,
  username,
}: {
  readonly path: string;
  readonly username: string;
}): JSX.Element {
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const [isDone, setDone] = useState(false);
  const doing = useDoing();
  const save = (event: Event): void => {
    event.preventDefault();
    setDone(false);
    void doing.run(async () => {
      if (password !== again) throw new Refusal(0, "the two passwords are not the same");
      await send("PUT", path, { password });
      setPassword("");
      setAgain("");
      setDone(true);
    });
  };
  return (
    <form onSubmit={save}>
      <h3>Password</h3>
      {/* A password manager keeps a password with the name beside it. */}
      <input type="hidden" name="username" autocomplete="username" value={username} />
      <TextField
        label="New password"
        type="password"
        value={password}
        onInput={setPassword}
        autocomplete="new-password"
        isRequired
        hint="At least 8 characters. All sessions that began with the present password end, this one as well if it did."
      />
      <TextField
        label="The same once more"
        type="password"
        value={again}
        onInput={setAgain}
        autocomplete="new-password"
        isRequired
      />
      <Button submits disabled={doing.isBusy}>
        Change the password
      </Button>
      {isDone && <Note tone="good">The password was changed.</Note>}
      <RefusalNote failure={doing.failure} />
    </form>
  );
}
