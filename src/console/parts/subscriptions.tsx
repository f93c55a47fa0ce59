// The kinds of messages, each with a way to subscribe an address and to end that.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type {
  NotificationTypes,
  Subscribed,
  Unsubscribed,
} from "../../wire/customer/notifications.ts";
import { at, send } from "../api.ts";
import { useAsked } from "../asked.ts";
import { useDoing } from "../doing.ts";
import { subscriptionWords } from "../subscription-words.ts";
import { visibleText } from "../visible-text.ts";
import { Answer, Button, TextField, Note, Panel, RefusalNote, Table } from "./pieces.tsx";

const sorts = [
  { sort: "email", title: "Mails" },
  { sort: "monitor", title: "Alerts by mail" },
] as const;

type Sort = (typeof sorts)[number]["sort"];
type Way = "subscribe" | "pause" | "end";
type Change = (sort: Sort, type: string, way: Way) => void;

export function Subscriptions({ mayWrite }: { readonly mayWrite: boolean }): JSX.Element {
  const [email, setEmail] = useState("");
  const [told, setTold] = useState<string>();
  const doing = useDoing();
  const change: Change = (sort, type, way) => {
    setTold(undefined);
    void doing.run(async () => {
      const { status } = await send<Subscribed | Unsubscribed>(
        "POST",
        at`/notifications/${sort}/${way === "subscribe" ? way : "unsubscribe"}/`,
        {
          notification_type: type,
          email: email.trim(),
          ...(way !== "subscribe" && { is_permanent: way === "end" }),
        },
      );
      setTold(`${visibleText(email.trim())} ${subscriptionWords(status, way === "pause")}.`);
    });
  };
  const isReady = mayWrite && email.trim() !== "" && !doing.isBusy;
  return (
    <Panel title="Who gets which messages">
      {mayWrite && (
        <TextField
          label="Address"
          type="email"
          value={email}
          onInput={setEmail}
          autocomplete="email"
          placeholder="ada@example.com"
          hint="Give an address, then say below which messages it gets. Central does not tell who is subscribed."
        />
      )}
      {told !== undefined && <Note tone="good">{told}</Note>}
      <RefusalNote failure={doing.failure} />
      {sorts.map(({ sort, title }) => (
        <TypesTable
          key={sort}
          sort={sort}
          title={title}
          onChange={mayWrite ? change : undefined}
          isReady={isReady}
        />
      ))}
    </Panel>
  );
}

const ways: readonly (readonly [way: Way, text: string])[] = [
  ["subscribe", "Subscribe"],
  ["pause", "Pause 30 days"],
  ["end", "Unsubscribe"],
];

function TypesTable({
  sort,
  title,
  onChange,
  isReady,
}: {
  readonly sort: Sort;
  readonly title: string;
  readonly onChange: Change | undefined;
  readonly isReady: boolean;
}): JSX.Element {
  const asked = useAsked<NotificationTypes>(at`/notifications/${sort}/types/`, {
    everyMs: 3_600_000,
  });
  return (
    <>
      <h3>{title}</h3>
      <Answer asked={asked}>
        {({ notification_types: types }) => (
          <Table caption={title} heads={["When", ""]}>
            {Object.entries(types).map(([type, about]) => (
              <tr key={type}>
                <td class="long" title={type}>
                  {about}
                </td>
                <td>
                  {onChange !== undefined && (
                    <div class="row acts">
                      {ways.map(([way, text]) => (
                        <Button
                          key={way}
                          disabled={!isReady}
                          label={`${text}: ${about}`}
                          onClick={() => onChange(sort, type, way)}
                        >
                          {text}
                        </Button>
                      ))}
                    </div>
                  )}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
    </>
  );
}
