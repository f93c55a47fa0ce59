// Lists of bots that are fetched from URLs: how that goes, what to do where it does not, and a form for another one.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { BotSource, PublishedBot } from "../../wire/customer/bot-source.ts";
import { at, send, withQuery } from "../api.ts";
import { useAsked } from "../asked.ts";
import { useDoing } from "../doing.ts";
import { usePages } from "../pages-asked.ts";
import { useMay } from "../session.ts";
import { visibleText } from "../visible-text.ts";
import { count, seconds } from "../words.ts";
import {
  Badge,
  Button,
  Choice,
  Confirm,
  Note,
  Panel,
  RefusalNote,
  Table,
  TextField,
  Time,
} from "./pieces.tsx";

const states: Readonly<
  Record<
    BotSource["state"],
    { readonly tone: "good" | "plain" | "warn" | "bad"; readonly words: string }
  >
> = {
  waiting: { tone: "plain", words: "not fetched yet" },
  good: { tone: "good", words: "as published" },
  failing: { tone: "warn", words: "not fetched" },
  fetching: { tone: "plain", words: "being fetched" },
  stale: { tone: "bad", words: "out of date" },
};

const refused = { tone: "warn", words: "refused" } as const;

/** What the API says to programs stands beside the button that does it. */
const peoplesReason = (reason: string): string => reason.replace(/; if that is meant, .*$/, "");

function pathOf({ list, bot, domain }: Pick<BotSource, "list" | "bot" | "domain">, more = "") {
  return withQuery(`${at`/bots/${list}/${bot}/source/`}${more}`, { domain });
}

export function BotSources({ domain }: { readonly domain: string }): JSX.Element {
  const mayWrite = useMay("write");
  const { items, failure, more, again } = usePages<BotSource>(
    withQuery("/bots/sources/", { limit: 200 }),
    { topics: ["bots"], domain },
  );
  const own = items?.filter((one) => one.domain === domain || one.domain.endsWith(`.${domain}`));
  return (
    <Panel title="Lists from URLs">
      <p class="quiet">
        Central fetches them again and again. Each takes the place of all that its bot holds.
      </p>
      {failure !== undefined && <Note tone="bad">{failure.message}</Note>}
      {own?.length === 0 && <p class="quiet">None is fetched.</p>}
      {own !== undefined && own.length > 0 && (
        <Table caption="Lists that are fetched" heads={["Bot", "State", "Came last", "From", ""]}>
          {own.map((source) => (
            <SourceRow key={source.id} source={source} mayWrite={mayWrite} onDone={again} />
          ))}
        </Table>
      )}
      {more !== undefined && <Button onClick={more}>More</Button>}
      {mayWrite && <SourceForm domain={domain} onDone={again} />}
      {mayWrite && <PublishedForm domain={domain} onDone={again} />}
    </Panel>
  );
}

type RowProps = {
  readonly source: BotSource;
  readonly mayWrite: boolean;
  readonly onDone: () => void;
};

function SourceRow({ source, mayWrite, onDone }: RowProps): JSX.Element {
  const { bot, list, domain, url, state, reason, when_fetched: fetched, interval_s } = source;
  const { tone, words } = source.outcome === "refused" ? refused : states[state];
  return (
    <tr>
      <th scope="row" class="wraps">
        {visibleText(bot)}
        <div class="quiet">
          {list === "bad" ? "bad bot" : "VIP bot"} of {domain}, {count(source.count)} addresses and
          ranges
        </div>
      </th>
      <td class="wraps">
        <Badge tone={tone}>{words}</Badge>
        {reason !== null && <div class="quiet">{visibleText(peoplesReason(reason))}</div>}
      </td>
      <td>
        {fetched === null ? "never" : <Time at={fetched} />}
        <div class="quiet">
          next <Time at={source.when_next} />
        </div>
      </td>
      <td class="long">
        <span class="mono">{visibleText(url)}</span>
        <div class="quiet">every {seconds(interval_s)}</div>
      </td>
      <td>{mayWrite && <SourceActs source={source} onDone={onDone} />}</td>
    </tr>
  );
}

function SourceActs({ source, onDone }: Omit<RowProps, "mayWrite">): JSX.Element {
  const doing = useDoing();
  const { bot, outcome, reason } = source;
  const name = visibleText(bot);
  const run = (action: () => Promise<unknown>): void => {
    void doing.run(async () => {
      await action();
      onDone();
    });
  };
  // Of the reasons to refuse a list only this one is a question.
  const isShrink = outcome === "refused" && reason?.includes("allow_shrink") === true;
  return (
    <>
      <div class="row acts">
        <Button
          disabled={doing.isBusy}
          label={`Fetch the list of ${name} now`}
          onClick={() => run(async () => send("POST", pathOf(source, "fetch/")))}
        >
          Fetch now
        </Button>
        {isShrink && (
          <Confirm
            question={`Let the list leave ${name} with less than half of its addresses?`}
            doIt="Take the list as it is"
            label={`Take the shorter list of ${name}`}
            disabled={doing.isBusy}
            onYes={() =>
              run(async () => send("POST", `${pathOf(source, "fetch/")}&allow_shrink=true`))
            }
          >
            It is meant
          </Confirm>
        )}
        <Confirm
          question={`Stop fetching the list of ${name}? It keeps the addresses that it has.`}
          doIt="Stop fetching"
          label={`Stop fetching the list of ${name}`}
          disabled={doing.isBusy}
          onYes={() => run(async () => send("DELETE", pathOf(source)))}
        >
          Stop
        </Confirm>
      </div>
      <RefusalNote failure={doing.failure} />
    </>
  );
}

/** Crawlers whose owners publish their addresses: one choice, no URL. */
function PublishedForm({ domain, onDone }: FormProps): JSX.Element {
  const asked = useAsked<readonly PublishedBot[]>("/bots/published/");
  const [bot, setBot] = useState("");
  const doing = useDoing();
  const known = asked.value ?? [];
  const chosen = bot === "" ? (known[0]?.bot ?? "") : bot;
  const set = (event: Event): void => {
    event.preventDefault();
    void doing.run(async () => {
      await send("PUT", pathOf({ list: "vip", bot: chosen, domain }), { published: true });
      onDone();
    });
  };
  const options = known.map((one) => [one.bot, one.bot] as const);
  return (
    <form onSubmit={set}>
      <h3>Let in a crawler from the addresses that its owner publishes</h3>
      <p class="quiet">It becomes a VIP bot. Whoever else claims to be it is told as a fake.</p>
      <div class="row">
        <Choice label="Crawler" value={chosen} options={options} onChange={setBot} />
        <Button submits disabled={doing.isBusy || chosen === ""}>
          Fetch its addresses
        </Button>
      </div>
      <RefusalNote failure={doing.failure} />
    </form>
  );
}

const lists = [
  ["bad", "bad bots"],
  ["vip", "VIP bots"],
] as const;
const intervals = [
  ["3600", "an hour"],
  ["86400", "a day"],
  ["604800", "a week"],
] as const;

type FormProps = { readonly domain: string; readonly onDone: () => void };

function SourceForm({ domain, onDone }: FormProps): JSX.Element {
  const [list, setList] = useState<(typeof lists)[number][0]>("bad");
  const [every, setEvery] = useState<(typeof intervals)[number][0]>("86400");
  const [bot, setBot] = useState("");
  const [url, setUrl] = useState("");
  const doing = useDoing();
  const set = (event: Event): void => {
    event.preventDefault();
    void doing.run(async () => {
      await send("PUT", pathOf({ list, bot, domain }), { url, interval_s: Number(every) });
      setBot("");
      setUrl("");
      onDone();
    });
  };
  return (
    <form onSubmit={set}>
      <h3>Fetch another list</h3>
      <div class="row">
        <Choice label="For" value={list} options={lists} onChange={setList} />
        <TextField
          label="Name of the bot"
          value={bot}
          onInput={setBot}
          isRequired
          placeholder="Examplebot"
        />
        <Choice label="Every" value={every} options={intervals} onChange={setEvery} />
      </div>
      <TextField
        label="URL of the list"
        value={url}
        onInput={setUrl}
        isRequired
        placeholder="https://lists.example.net/scrapers.txt"
        hint="text with an address or range a line, a JSON array of them, or as search engines publish theirs"
      />
      <Button submits disabled={doing.isBusy}>
        Fetch it
      </Button>
      <RefusalNote failure={doing.failure} />
    </form>
  );
}
