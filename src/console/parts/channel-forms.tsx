// The forms of channels: one of a chat, one of mails.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { ChatChannel, EmailChannel } from "../../wire/customer/monitor-channels.ts";
import { useDoing } from "../doing.ts";
import { visibleText } from "../visible-text.ts";
import { Button, TextField, RefusalNote } from "./pieces.tsx";

export type ChannelFormProps<T> = {
  /** Undefined for a new one. */
  readonly channel: T | undefined;
  readonly save: (body: Readonly<Record<string, string>>) => Promise<void>;
  /** Leaves a channel as it is. */
  readonly onLeave?: () => void;
};

export function ChatForm({ channel, save, onLeave }: ChannelFormProps<ChatChannel>): JSX.Element {
  const [uid, setUid] = useState(channel?.monitor_uid ?? "");
  const [name, setName] = useState(channel?.chat_channel_name ?? "");
  const [url, setUrl] = useState(channel?.chat_hook_url ?? "");
  return (
    <ChannelForm
      uid={uid}
      isNew={channel === undefined}
      onLeave={onLeave}
      save={async () =>
        save({ monitor_uid: uid, chat_channel_name: name, chat_hook_url: url.trim() })
      }
    >
      <TeamField value={uid} onInput={setUid} />
      <TextField
        label="Channel"
        value={name}
        onInput={setName}
        isRequired
        placeholder="#alerts"
        hint="How the chat calls it"
      />
      <TextField
        label="Hook"
        type="url"
        value={url}
        onInput={setUrl}
        isRequired
        placeholder="https://chat.example.com/hooks/…"
        hint="Whoever knows this address can post to the channel. It has to be one that central can reach."
      />
    </ChannelForm>
  );
}

export function EmailForm({ channel, save, onLeave }: ChannelFormProps<EmailChannel>): JSX.Element {
  const [uid, setUid] = useState(channel?.monitor_uid ?? "");
  return (
    <ChannelForm
      uid={uid}
      isNew={channel === undefined}
      onLeave={onLeave}
      save={async () => save({ monitor_uid: uid })}
    >
      <TeamField value={uid} onInput={setUid} />
    </ChannelForm>
  );
}

function TeamField(props: {
  readonly value: string;
  readonly onInput: (value: string) => void;
}): JSX.Element {
  return (
    <TextField {...props} label="Team" isRequired placeholder="team-a" hint="A name of yours" />
  );
}

function ChannelForm({
  uid,
  isNew,
  save,
  onLeave,
  children,
}: {
  readonly uid: string;
  readonly isNew: boolean;
  readonly save: () => Promise<void>;
  readonly onLeave: (() => void) | undefined;
  readonly children: ComponentChildren;
}): JSX.Element {
  const doing = useDoing();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void doing.run(save);
      }}
    >
      {children}
      <div class="row">
        <Button submits disabled={doing.isBusy}>
          {isNew ? "Make the channel" : `Save ${visibleText(uid)}`}
        </Button>
        {onLeave !== undefined && (
          <Button onClick={onLeave}>Leave {visibleText(uid)} as it is</Button>
        )}
      </div>
      <RefusalNote failure={doing.failure} />
    </form>
  );
}
