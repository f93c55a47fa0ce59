// Channels of alerts: hooks of chats, and names under which mails of alerts go out. Each is tried out with a test on the way of an alert.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type {
  ChannelTested,
  ChatChannel,
  EmailChannel,
} from "../../wire/customer/monitor-channels.ts";
import { send } from "../api.ts";
import { useAsked } from "../asked.ts";
import { useDoing } from "../doing.ts";
import { hookWords } from "../hook-words.ts";
import { visibleText } from "../visible-text.ts";
import { several } from "../words.ts";
import { ChatForm, EmailForm, type ChannelFormProps } from "./channel-forms.tsx";
import { Opens } from "./opens.tsx";
import { Answer, Button, Confirm, Note, Panel, RefusalNote, Table } from "./pieces.tsx";

export function ChatChannels(): JSX.Element {
  return (
    <Channels<ChatChannel>
      kind="chat"
      title="Chat channels of alerts"
      about="Every alert is posted to each of them."
      heads={["Team", "Channel", "Hook", ""]}
      cells={({ chat_channel_name: name, chat_hook_url: url }) => (
        <>
          <td class="long">{visibleText(name)}</td>
          <td class="long mono">{hookWords(url)}</td>
        </>
      )}
      Form={ChatForm}
    />
  );
}

export function EmailChannels(): JSX.Element {
  return (
    <Channels<EmailChannel>
      kind="email"
      title="E-mail channels of alerts"
      about="With at least one, alerts go to every address that is subscribed to their kind, see above."
      heads={["Team", ""]}
      cells={() => null}
      Form={EmailForm}
    />
  );
}

type ChannelsProps<T> = {
  readonly kind: "chat" | "email";
  readonly title: string;
  readonly about: string;
  readonly heads: readonly string[];
  readonly cells: (channel: T) => ComponentChildren;
  readonly Form: (props: ChannelFormProps<T>) => JSX.Element;
};

function Channels<T extends EmailChannel>({
  kind,
  title,
  about,
  heads,
  cells,
  Form,
}: ChannelsProps<T>): JSX.Element {
  const path = `/monitor-notification-channel/${kind}/`;
  const asked = useAsked<readonly T[]>(path, { topics: ["channels"] });
  const [edited, setEdited] = useState<number>();
  const [made, setMade] = useState(0);
  const channel = asked.value?.find(({ id }) => id === edited);
  return (
    <Panel title={title}>
      <p class="quiet">{about}</p>
      <Answer asked={asked}>
        {(found) =>
          found.length === 0 ? (
            <p class="quiet">There is none.</p>
          ) : (
            <Table caption={title} heads={heads}>
              {found.map((channel) => (
                <tr key={channel.id}>
                  <th scope="row" class="wraps">
                    {visibleText(channel.monitor_uid)}
                  </th>
                  {cells(channel)}
                  <td>
                    <ChannelButtons
                      path={`${path}${channel.id}/`}
                      name={visibleText(channel.monitor_uid)}
                      onEdit={() => setEdited(channel.id)}
                      onChange={asked.again}
                    />
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
      {channel !== undefined && (
        <>
          <h3>Edit {visibleText(channel.monitor_uid)}</h3>
          <Form
            key={channel.id}
            channel={channel}
            save={async (body) => {
              await send("PUT", `${path}${channel.id}/`, body);
              setEdited(undefined);
              asked.again();
            }}
            onLeave={() => setEdited(undefined)}
          />
        </>
      )}
      <Opens title={`Make a channel: ${title}`}>
        {() => (
          <Form
            key={made}
            channel={undefined}
            save={async (body) => {
              await send("POST", path, body);
              setMade(made + 1);
              asked.again();
            }}
          />
        )}
      </Opens>
    </Panel>
  );
}

function ChannelButtons({
  path,
  name,
  onEdit,
  onChange,
}: {
  readonly path: string;
  readonly name: string;
  readonly onEdit: () => void;
  readonly onChange: () => void;
}): JSX.Element {
  const [told, setTold] = useState<string>();
  const doing = useDoing();
  const test = (): void => {
    setTold(undefined);
    void doing.run(async () => {
      const { messages } = await send<ChannelTested>("POST", `${path}test/`, {});
      setTold(`${several(messages, "message")} on the way`);
    });
  };
  const remove = (): void => {
    void doing.run(async () => {
      await send("DELETE", path);
      onChange();
    });
  };
  return (
    <>
      <div class="row acts">
        <Button disabled={doing.isBusy} onClick={test} label={`Send a test to ${name}`}>
          Send a test
        </Button>
        <Button onClick={onEdit} label={`Edit ${name}`}>
          Edit
        </Button>
        <Confirm
          question={`Delete the channel ${name}, with what is still to be sent to it?`}
          doIt={`Delete ${name}`}
          label={`Delete ${name}`}
          disabled={doing.isBusy}
          onYes={remove}
        >
          Delete
        </Confirm>
      </div>
      {told !== undefined && <Note tone="good">{told}</Note>}
      <RefusalNote failure={doing.failure} />
    </>
  );
}
