// Requests of a domain: filtered, followed live, opened one by one, and exported.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { cacheChoices } from "../cache-words.ts";
import { filterFields, filterOf, pathMeant, type Filter, type FilterName } from "../logs-filter.ts";
import { exportRequests } from "../logs-export.ts";
import { useDoing } from "../doing.ts";
import { RequestPanel } from "../parts/request-panel.tsx";
import { RequestsTable } from "../parts/requests-table.tsx";
import { Button, Check, Choice, TextField, Note, Panel, RefusalNote } from "../parts/pieces.tsx";
import { goTo, hrefTo } from "../route.ts";
import { useSession } from "../session.ts";
import { moment, periodText, writtenMs } from "../words.ts";
import type { TabProps } from "../tab.ts";

export function LogsTab({ domain, route }: TabProps): JSX.Element {
  const { may_read_logs: mayReadLogs } = useSession();
  const [isFollowing, setFollowing] = useState(false);
  const [opened, setOpened] = useState<string>();
  const filter = filterOf(route.query);
  if (!mayReadLogs) return <Note>The operator does not let you read request logs.</Note>;
  return (
    <>
      <FilterForm key={JSON.stringify(filter)} domain={domain} filter={filter} />
      {opened !== undefined && (
        <RequestPanel
          key={opened}
          domain={domain}
          id={opened}
          onClose={() => setOpened(undefined)}
        />
      )}
      <Panel
        title="Requests"
        beside={
          <div class="row">
            <Check label="Follow" isOn={isFollowing} onChange={setFollowing} />
            <Export domain={domain} filter={filter} />
          </div>
        }
      >
        <RequestsTable
          domain={domain}
          filter={filter}
          isFollowing={isFollowing}
          onOpen={setOpened}
        />
      </Panel>
    </>
  );
}

/** What central does not understand it says itself. */
function timeWords(since: string, until: string | undefined): string {
  const [from, to] = [writtenMs(since), until === undefined ? undefined : writtenMs(until)];
  if (Number.isNaN(from) || Number.isNaN(to ?? 0)) return [since, until ?? "now"].join(" to ");
  return to === undefined ? `Since ${moment(from)}` : periodText(from, to);
}

function FilterForm({
  domain,
  filter,
}: {
  readonly domain: string;
  readonly filter: Filter;
}): JSX.Element {
  const [fields, setFields] = useState(filter);
  const here = ["d", domain, "logs"];
  const set = (name: FilterName) => (value: string) =>
    setFields((before) => ({ ...before, [name]: value.trim() }));
  return (
    <Panel title="Which requests">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          goTo(hrefTo(here, { ...fields, path_is: pathMeant(fields.path_is ?? "") }));
        }}
      >
        <div class="tiles">
          {filterFields.map(([name, label, example]) =>
            name === "cache" ? (
              <Choice
                key={name}
                label={label}
                value={fields.cache ?? ""}
                options={cacheChoices(filter.cache ?? "")}
                onChange={set(name)}
              />
            ) : (
              <TextField
                key={name}
                label={label}
                value={fields[name] ?? ""}
                onInput={set(name)}
                placeholder={example}
              />
            ),
          )}
        </div>
        {filter.since !== undefined && <p class="quiet">{timeWords(filter.since, filter.until)}</p>}
        <div class="row">
          <Button kind="main" submits>
            Filter
          </Button>
          <Button onClick={() => goTo(hrefTo(here))}>All requests</Button>
        </div>
      </form>
    </Panel>
  );
}

function Export({
  domain,
  filter,
}: {
  readonly domain: string;
  readonly filter: Filter;
}): JSX.Element {
  const doing = useDoing();
  const [done, setDone] = useState(0);
  return (
    <>
      <Button
        disabled={doing.isBusy}
        onClick={() => void doing.run(async () => exportRequests(domain, filter, setDone))}
      >
        {doing.isBusy ? `Exporting, ${done} so far …` : "Export"}
      </Button>
      <RefusalNote failure={doing.failure} />
    </>
  );
}
