// One of a domain's two lists: bots with their addresses. Many addresses are pasted at once; those that are none stay in the field, each with the reason.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { BotRecord } from "../../wire/customer/bot.ts";
import { at, Refusal, send, withQuery } from "../api.ts";
import { useDoing } from "../doing.ts";
import { usePages } from "../pages-asked.ts";
import { useMay } from "../session.ts";
import { visibleText } from "../visible-text.ts";
import { count, several } from "../words.ts";
import { Button, Confirm, TextField, Note, Panel, RefusalNote, Table } from "./pieces.tsx";

type ListName = "bad" | "vip";

const words: Readonly<Record<ListName, { readonly title: string; readonly about: string }>> = {
  bad: {
    title: "Bad bots",
    about: "Whoever comes from these addresses is refused, unless the VIP list has the address.",
  },
  vip: { title: "VIP bots", about: "Whoever comes from these addresses is let in." },
};

const rangeText = (range: string): string => range.replace("/", "_");
const shownMost = 8;

export function BotList({
  domain,
  list,
}: {
  readonly domain: string;
  readonly list: ListName;
}): JSX.Element {
  const mayWrite = useMay("write");
  const {
    items: own,
    failure,
    more,
    again,
  } = usePages<BotRecord>(withQuery(`/list-${list}-bots/`, { domain, limit: 50 }), {
    topics: ["bots"],
    domain,
  });
  const doing = useDoing();
  const removeAll = (record: BotRecord): void => {
    void doing.run(async () => {
      const path = listPath({ domain: record.domain, list, bot: record.name });
      await send("PUT", withQuery(path, { allow_shrink: "true" }), []);
      again();
    });
  };
  const remove = (record: BotRecord, range: string): void => {
    void doing.run(async () => {
      await send(
        "POST",
        `${at`/remove-ip-from-${list}-bot-list/${rangeText(range)}/`}?return=summary`,
        {
          remove_from_bot: record.name,
          remove_from_domain: record.domain,
        },
      );
      again();
    });
  };
  return (
    <Panel title={words[list].title}>
      <p class="quiet">{words[list].about}</p>
      {failure !== undefined && <Note tone="bad">{failure.message}</Note>}
      {own?.length === 0 && <p class="quiet">Nobody is in it.</p>}
      {own !== undefined && own.length > 0 && (
        <Table caption={`Addresses of ${words[list].title}`} heads={["Bot", "Host", "Addresses"]}>
          {own.map((record) => (
            <tr key={record.id}>
              <td class="long">
                {visibleText(record.name)}
                {record.stands_for !== undefined && (
                  <span class="quiet"> ({visibleText(record.stands_for.join(", "))})</span>
                )}
              </td>
              <td>{record.domain}</td>
              <td>
                <Addresses record={record} onRemove={mayWrite ? remove : undefined} />
                {mayWrite && record.ip_addresses.length > 1 && (
                  <Confirm
                    question={`Remove all ${count(record.ip_address_count ?? record.ip_addresses.length)} addresses and ranges from ${visibleText(record.name)}?`}
                    doIt="Remove them all"
                    label={`Remove all from ${visibleText(record.name)}`}
                    disabled={doing.isBusy}
                    onYes={() => removeAll(record)}
                  >
                    Remove all
                  </Confirm>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {more !== undefined && <Button onClick={more}>More</Button>}
      <RefusalNote failure={doing.failure} />
      {mayWrite && <MarkForm domain={domain} list={list} onDone={again} />}
    </Panel>
  );
}

function Addresses({
  record,
  onRemove,
}: {
  readonly record: BotRecord;
  readonly onRemove: ((record: BotRecord, range: string) => void) | undefined;
}): JSX.Element {
  const [isAll, setAll] = useState(false);
  const { ip_addresses: all, name } = record;
  const shown = isAll ? all : all.slice(0, shownMost);
  return (
    <ul class="plainly">
      {shown.map((range) => (
        <li key={range}>
          <span class="mono">{range}</span>{" "}
          {onRemove !== undefined && (
            <Button
              onClick={() => onRemove(record, range)}
              label={`Remove ${range} from ${visibleText(name)}`}
            >
              Remove
            </Button>
          )}
        </li>
      ))}
      {record.ip_address_count !== undefined && (
        <li class="quiet">1,000 of {count(record.ip_address_count)}</li>
      )}
      {shown.length < all.length && (
        <li>
          <Button onClick={() => setAll(true)}>All {all.length}</Button>
        </li>
      )}
    </ul>
  );
}

function MarkForm({
  domain,
  list,
  onDone,
}: {
  readonly domain: string;
  readonly list: ListName;
  readonly onDone: () => void;
}): JSX.Element {
  const [bot, setBot] = useState("");
  const [text, setText] = useState("");
  const [told, setTold] = useState<{
    readonly tone: "good" | "bad";
    readonly lines: readonly string[];
  }>();
  const doing = useDoing();
  const mark = (event: Event): void => {
    event.preventDefault();
    const ranges = [...new Set(text.split(/[\s,;]+/).filter((one) => one !== ""))];
    void doing.run(async () => {
      const refused = await addAll({ domain, list, bot, ranges });
      setText(refused.map(({ range }) => range).join("\n"));
      setTold(
        refused.length === 0
          ? {
              tone: "good",
              lines: [
                `${several(ranges.length, "address or range", "addresses and ranges")} added.`,
              ],
            }
          : { tone: "bad", lines: refused.map(({ range, why }) => `${range}: ${why}`) },
      );
      onDone();
    });
  };
  return (
    <form onSubmit={mark}>
      <h3>Add addresses</h3>
      <div class="row">
        <TextField label="Bot" value={bot} onInput={setBot} isRequired placeholder="Examplebot" />
      </div>
      <TextField
        label="Addresses and ranges"
        value={text}
        onInput={setText}
        rows={3}
        isRequired
        hint="192.0.2.7, 198.51.100.0/24 or 2001:db8::/32; as many as you like, with blanks, commas or lines between"
      />
      <Button submits disabled={doing.isBusy}>
        {doing.isBusy ? "Adding …" : "Add"}
      </Button>
      {told !== undefined && (
        <Note tone={told.tone}>
          {told.lines.map((line) => (
            <div key={line}>{line}</div>
          ))}
        </Note>
      )}
      <RefusalNote failure={doing.failure} />
    </form>
  );
}

type Place = { readonly domain: string; readonly list: ListName; readonly bot: string };

function listPath({ domain, list, bot }: Place): string {
  return withQuery(at`/bots/${list}/${bot}/addresses/`, { domain });
}

/** The most of one question. */
const addedAtOnce = 10_000;

type Refused = { readonly range: string; readonly why: string };

/** Adds all but those that are no addresses, which come back with the reason. Rejects where central refuses for another one. */
async function addAll({
  ranges,
  ...place
}: Place & { readonly ranges: readonly string[] }): Promise<readonly Refused[]> {
  const refused: Refused[] = [];
  for (let from = 0; from < ranges.length; from += addedAtOnce) {
    const part = ranges.slice(from, from + addedAtOnce);
    const wrong = await addPart(place, part);
    refused.push(...wrong);
    const known = new Set(wrong.map(({ range }) => range));
    const rest = part.filter((range) => !known.has(range));
    if (wrong.length > 0 && rest.length > 0) await addPart(place, rest);
  }
  return refused;
}

/** Adds all of them, or none: then those that are wrong come back. */
async function addPart(place: Place, add: readonly string[]): Promise<readonly Refused[]> {
  try {
    await send("POST", listPath(place), { add });
    return [];
  } catch (error) {
    const wrong =
      error instanceof Refusal
        ? error.errors.flatMap(({ path, message }) => {
            const range = add[Number(/^\/add\/(\d+)$/.exec(path)?.[1] ?? -1)];
            return range === undefined ? [] : [{ range, why: message }];
          })
        : [];
    if (wrong.length === 0) throw error;
    return wrong;
  }
}
