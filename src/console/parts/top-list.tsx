// The most frequent keys of a time: paths, statuses by path, bots, addresses. Where a count is not exact, both its ends are shown.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Analytics, TopListName } from "../../wire/customer/analytics.ts";
import { at, withQuery } from "../api.ts";
import { useAsked } from "../asked.ts";
import { hrefTo } from "../route.ts";
import { useSession } from "../session.ts";
import { filterOfTop } from "../top-filter.ts";
import type { TrafficWindow } from "../traffic-window.ts";
import { visibleText } from "../visible-text.ts";
import { count, periodText } from "../words.ts";
import { Answer, Button, Panel, Table } from "./pieces.tsx";

const fewRows = 10;
const moreRows = 200;
/** Lists are kept by the hour for 7 days, and by the day for longer. */
const hoursKeptS = 6 * 86_400;

export function TopList({
  domain,
  shown: { since, until },
  by,
  title,
}: {
  readonly domain: string;
  readonly shown: TrafficWindow;
  readonly by: TopListName;
  readonly title: string;
}): JSX.Element | null {
  const [rows, setRows] = useState(fewRows);
  const { may_read_logs: mayReadLogs } = useSession();
  const isKept = by !== "top_addresses" || mayReadLogs;
  const step = Date.now() / 1e3 - since > hoursKeptS ? "day" : "hour";
  const asked = useAsked<Analytics>(
    isKept ? withQuery(at`/analytics/${domain}/`, { by, since, until, step }) : undefined,
    { keepsOld: true },
  );
  if (!isKept) return null;
  const logsOf = (key: string): string =>
    hrefTo(["d", domain, "logs"], { ...filterOfTop(by, key), since, until });
  const found = asked.value?.tops?.length ?? 0;
  return (
    <Panel
      title={title}
      beside={
        found > fewRows && (
          <Button onClick={() => setRows(rows === fewRows ? moreRows : fewRows)}>
            {rows === fewRows ? `All ${found}` : "Fewer"}
          </Button>
        )
      }
    >
      <Answer asked={asked}>
        {({ tops = [], since: first, until: last }) =>
          tops.length === 0 ? (
            <p class="quiet">Nothing in this time.</p>
          ) : (
            <>
              <p class="quiet">
                Whole {step}s of UTC, {periodText(first * 1_000, last * 1_000)}, up to a minute
                behind
                {tops.some(({ error }) => error > 0) && "; “10 to 16” means that it lies between"}
              </p>
              <Table caption={title} heads={["", "Requests"]}>
                {surestFirst(tops)
                  .slice(0, rows)
                  .map(({ key, requests, error }) => (
                    <tr key={key}>
                      <td class="long">
                        {mayReadLogs ? (
                          <a href={logsOf(key)}>{visibleText(key)}</a>
                        ) : (
                          visibleText(key)
                        )}
                      </td>
                      <td class="number">
                        {error > 0 && `${count(requests - error)} to `}
                        {count(requests)}
                      </td>
                    </tr>
                  ))}
              </Table>{" "}
            </>
          )
        }
      </Answer>
    </Panel>
  );
}

type Tops = NonNullable<Analytics["tops"]>;

/** By how often each was asked for at least: who came late into the list may owe all its requests to who was there before. */
function surestFirst(tops: Tops): Tops {
  return tops.toSorted((a, b) => b.requests - b.error - (a.requests - a.error));
}
