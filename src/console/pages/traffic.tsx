// What the requests of a domain add up to: figures, plots over time, and the most frequent of everything.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Alert } from "../../wire/customer/alert.ts";
import type { Analytics, AnalyticsBy } from "../../wire/customer/analytics.ts";
import type { ClearRecord } from "../../wire/customer/clear.ts";
import type { ViewsetVersion } from "../../wire/customer/viewset.ts";
import { at, withQuery } from "../api.ts";
import { useAsked, type Asked } from "../asked.ts";
import { cachePartsShown, cacheWords } from "../cache-words.ts";
import { clearWords } from "../clear-words.ts";
import { Chart, type Line, type Mark } from "../parts/chart.tsx";
import { ImageVariantsPanel } from "../parts/image-variants.tsx";
import { Answer, Button, Choices, Note } from "../parts/pieces.tsx";
import { countInClass } from "../status-class.ts";
import { TopList } from "../parts/top-list.tsx";
import { goTo, hrefTo } from "../route.ts";
import { useSession } from "../session.ts";
import { useNow } from "../now.ts";
import { draggedWindow, spans, windowOf, type TrafficWindow } from "../traffic-window.ts";
import { bitRate, byteCount, count, percent, seconds, shortCount } from "../words.ts";
import type { TabProps } from "../tab.ts";

const refreshMs = 15_000;

export function TrafficTab({ domain, route }: TabProps): JSX.Element {
  const nowS = useNow(refreshMs);
  const shown = windowOf(route.query, nowS);
  const here = ["d", domain, "traffic"];
  const cache = useNumbers(domain, shown, "cache");
  const status = useNumbers(domain, shown, "status");
  return (
    <>
      <div class="row">
        <Choices
          label="Time shown"
          value={shown.span ?? ""}
          options={spans.map(([name, text]) => [name, text])}
          onChange={(span) => goTo(hrefTo(here, { span }))}
        />
        {shown.span === undefined && (
          <Button onClick={() => goTo(hrefTo(here, aroundOf(shown)))}>Wider</Button>
        )}
        <span class="quiet">Drag across a plot to look closer; go back with the browser.</span>
      </div>
      <Answer asked={cache}>
        {(found) => (
          <>
            <Figures cache={found} status={status.value} />
            <ByCache domain={domain} shown={shown} counts={found.totals.counts} />
          </>
        )}
      </Answer>
      <Plots domain={domain} shown={shown} cache={cache} status={status} />
      <ImageVariantsPanel domain={domain} />
      <Tops domain={domain} shown={shown} />
    </>
  );
}

function useNumbers(
  domain: string,
  { since, until }: TrafficWindow,
  by: AnalyticsBy,
): Asked<Analytics> {
  const path = withQuery(at`/analytics/${domain}/`, { by, since, until });
  return useAsked<Analytics>(path, { everyMs: refreshMs, keepsOld: true });
}

type Shown = { readonly domain: string; readonly shown: TrafficWindow };

function Plots({
  domain,
  shown,
  cache,
  status,
}: Shown & {
  readonly cache: Asked<Analytics>;
  readonly status: Asked<Analytics>;
}): JSX.Element {
  const reasons = useNumbers(domain, shown, "reason");
  const marks = useMarks(domain, shown);
  const drag = (since: number, until: number): void =>
    goTo(hrefTo(["d", domain, "traffic"], draggedWindow(since, until)));
  return (
    <div class="two">
      <Plot
        asked={cache}
        title="Requests"
        shown={shown}
        drag={drag}
        marks={marks}
        format={shortCount}
        isStacked
        lines={cacheLines}
      />
      <Plot
        asked={status}
        title="Statuses"
        shown={shown}
        drag={drag}
        marks={marks}
        format={shortCount}
        isStacked
        lines={statusLines}
      />
      <Plot
        asked={cache}
        title="Sent, and saved by the cache"
        shown={shown}
        drag={drag}
        marks={marks}
        format={byteCount}
        areBytes
        lines={byteLines}
      />
      <Plot
        asked={cache}
        title="Time of the origin"
        shown={shown}
        drag={drag}
        marks={marks}
        format={seconds}
        lines={originLines}
      />
      <Plot
        asked={cache}
        title="Hit ratio"
        shown={shown}
        drag={drag}
        marks={marks}
        format={(value) => `${Number(value.toPrecision(3))} %`}
        lines={hitLines}
      />
      <Plot
        asked={reasons}
        title="Why requests were let in or refused"
        shown={shown}
        drag={drag}
        marks={marks}
        format={shortCount}
        isStacked
        lines={reasonLines}
      />
    </div>
  );
}

function Tops({ domain, shown }: Shown): JSX.Element {
  return (
    <div class="two">
      <TopList domain={domain} shown={shown} by="top_paths" title="Most asked paths" />
      <TopList domain={domain} shown={shown} by="top_status_paths" title="Statuses by path" />
      <TopList domain={domain} shown={shown} by="top_bots" title="Bots" />
      <TopList domain={domain} shown={shown} by="top_addresses" title="Addresses" />
    </div>
  );
}

function aroundOf({ since, until }: TrafficWindow): {
  readonly since: number;
  readonly until: number;
} {
  const length = until - since;
  return { since: since - length, until: Math.min(until + length, Math.ceil(Date.now() / 1e3)) };
}

function Figures({
  cache,
  status,
}: {
  readonly cache: Analytics;
  readonly status: Analytics | undefined;
}): JSX.Element {
  const { totals, since, until, complete } = cache;
  const { requests, hits, bytes, saved_bytes: saved, origin, missing, counts = {} } = totals;
  const [errors, refusals] = [
    countInClass(status?.totals.counts, "5"),
    countInClass(status?.totals.counts, "4"),
  ];
  // The last span is not over yet.
  const passed = Math.max(1, Math.min(until, Date.now() / 1e3) - since);
  const blocked = counts["blocked"] ?? 0;
  const limited = status?.totals.counts?.["429"] ?? 0;
  const tiles: readonly (readonly [name: string, value: string, more?: string])[] = [
    ["Requests", shortCount(requests), `${shortCount(requests / passed)} a second`],
    ["Hit ratio", percent(hits, requests), `${count(hits)} from the cache`],
    ["Sent", byteCount(bytes), bitRate(bytes / passed)],
    ["Saved by the cache", byteCount(saved), percent(saved, bytes)],
    ["Errors 5xx", count(errors), percent(errors, requests)],
    ["Refusals 4xx", count(refusals), percent(refusals, requests)],
    ["Blocked", count(blocked), percent(blocked, requests)],
    ...(limited === 0
      ? []
      : [["Too many, 429", count(limited), percent(limited, requests)] as const]),
    [
      "Origin, 95 of 100",
      origin.p95 === null ? "–" : seconds(origin.p95),
      `${count(origin.requests)} asked`,
    ],
  ];
  return (
    <>
      <dl class="tiles">
        {tiles.map(([name, value, more]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {value}
              {more !== undefined && <small>{more}</small>}
            </dd>
          </div>
        ))}
      </dl>
      {!complete && (
        <Note tone="warn">Numbers are still being brought together: these are too small.</Note>
      )}
      {missing.at_most > 0 && (
        <Note tone="warn">
          The hosts told {missingWords(missing)} lost in this time, of all their domains.
        </Note>
      )}
    </>
  );
}

/** How many requests the cache had which part in; each leads to these requests. */
function ByCache({
  domain,
  shown: { since, until },
  counts = {},
}: Shown & { readonly counts: Analytics["totals"]["counts"] }): JSX.Element | null {
  const { may_read_logs: mayReadLogs } = useSession();
  const some = cachePartsShown.filter((outcome) => (counts[outcome] ?? 0) > 0);
  if (some.length === 0) return null;
  return (
    <p>
      By the cache:{" "}
      {some.map((outcome, no) => {
        const text = `${cacheWords(outcome)} ${count(counts[outcome] ?? 0)}`;
        return (
          <span key={outcome}>
            {no > 0 && " · "}
            {mayReadLogs ? (
              <a href={hrefTo(["d", domain, "logs"], { cache: outcome, since, until })}>{text}</a>
            ) : (
              text
            )}
          </span>
        );
      })}
    </p>
  );
}

function missingWords({ at_least: least, at_most: most }: Analytics["totals"]["missing"]): string {
  return least === most ? `${count(least)} records` : `${count(least)} to ${count(most)} records`;
}

type Series = Analytics["series"];

/** A minute that was not over when it was asked for would look like a fall. An hour or a day of which much is over is shown as it is. */
function ofWhole({ series, step }: Analytics, { span, until }: TrafficWindow): Series {
  if (step !== "minute" || span === undefined) return series;
  // The time that is asked for is up to a step ahead.
  const over = series.filter(({ at: begins }) => begins + 60 <= until - refreshMs / 1_000);
  return over.length === 0 ? series : over;
}

function Plot({
  asked,
  title,
  lines,
  drag,
  shown,
  ...rest
}: {
  readonly asked: Asked<Analytics>;
  readonly shown: TrafficWindow;
  readonly title: string;
  readonly lines: (series: Series) => readonly Line[];
  readonly drag: (since: number, until: number) => void;
  readonly marks: readonly Mark[];
  readonly format: (value: number) => string;
  readonly isStacked?: boolean;
  readonly areBytes?: boolean;
}): JSX.Element {
  const { value } = asked;
  // The window goes on before its figures are there: it counts as it was when they came.
  const drawn = useMemo(() => {
    if (value === undefined) return undefined;
    const series = ofWhole(value, shown);
    return { times: series.map(({ at: begins }) => begins), lines: lines(series) };
  }, [value, lines]);
  return (
    <section class="panel">
      {drawn === undefined ? (
        <p class="quiet">{asked.failure?.message ?? "Loading …"}</p>
      ) : (
        <Chart title={title} {...drawn} {...rest} onWindow={drag} />
      )}
    </section>
  );
}

const counted = (series: Series, ...names: readonly string[]): readonly number[] =>
  series.map(({ counts = {} }) => names.reduce((sum, name) => sum + (counts[name] ?? 0), 0));

function cacheLines(series: Series): readonly Line[] {
  return [
    { label: "hit", values: counted(series, "hit"), colour: 3 },
    { label: "stale", values: counted(series, "stale"), colour: 4 },
    { label: "miss", values: counted(series, "miss"), colour: 2 },
    { label: "not cached", values: counted(series, "pass", "none"), colour: 6 },
    { label: "blocked", values: counted(series, "blocked"), colour: "bad" },
  ];
}

function statusLines(series: Series): readonly Line[] {
  const inClass = (statusClass: "2" | "3" | "4" | "5"): readonly number[] =>
    series.map(({ counts }) => countInClass(counts, statusClass));
  return [
    { label: "2xx", values: inClass("2"), colour: 3 },
    { label: "3xx", values: inClass("3"), colour: 1 },
    { label: "4xx", values: inClass("4"), colour: 2 },
    { label: "5xx", values: inClass("5"), colour: "bad" },
  ];
}

function byteLines(series: Series): readonly Line[] {
  return [
    { label: "sent", values: series.map(({ bytes }) => bytes), colour: 1 },
    { label: "saved", values: series.map(({ saved_bytes: saved }) => saved), colour: 3 },
  ];
}

function originLines(series: Series): readonly Line[] {
  return [
    { label: "50 of 100", values: series.map(({ origin }) => origin.p50), colour: 1 },
    { label: "95 of 100", values: series.map(({ origin }) => origin.p95), colour: 2 },
    { label: "99 of 100", values: series.map(({ origin }) => origin.p99), colour: 5 },
  ];
}

function hitLines(series: Series): readonly Line[] {
  const values = series.map(({ hits, requests }) =>
    requests === 0 ? null : (100 * hits) / requests,
  );
  return [{ label: "hits of all requests", values, colour: 3 }];
}

const linesMost = 6;

function reasonLines(series: Series): readonly Line[] {
  const sums = new Map<string, number>();
  for (const { counts = {} } of series)
    for (const [name, number] of Object.entries(counts))
      sums.set(name, (sums.get(name) ?? 0) + number);
  const names = [...sums].toSorted(([, a], [, b]) => b - a).map(([name]) => name);
  const lines: Line[] = names
    .slice(0, linesMost - 1)
    .map((name, no) => ({ label: name, values: counted(series, name), colour: no + 1 }));
  const others = names.slice(linesMost - 1);
  if (others.length > 0)
    lines.push({ label: "others", values: counted(series, ...others), colour: linesMost });
  return lines;
}

/** In whole hours: a question that differs each time that the page is drawn is asked without end. */
function alertsKeptSince(): number {
  return Math.floor(Date.now() / 3.6e6) * 3_600 - 89 * 86_400;
}

/** What happened in the time shown: versions that became active, clears, alerts. */
function useMarks(domain: string, { since, until }: TrafficWindow): readonly Mark[] {
  const versions = useAsked<readonly ViewsetVersion[]>(
    `${at`/active-viewset/${domain}/`}?order=newest&limit=100`,
    {
      topics: ["viewsets"],
      domain,
    },
  );
  const clears = useAsked<readonly ClearRecord[]>(
    `${at`/clear-accelerator-cache/${domain}/`}?order=newest&limit=200`,
    {
      topics: ["clears"],
      domain,
    },
  );
  const alerts = useAsked<readonly Alert[]>(
    withQuery("/alerts/", { since: Math.max(since, alertsKeptSince()) }),
    { topics: ["alerts"] },
  );
  return useMemo(() => {
    const all: readonly Mark[] = [
      ...(versions.value ?? []).flatMap(({ name, activations }) =>
        activations.map((when) => ({
          at: Date.parse(when) / 1e3,
          text: `version ${name} became active`,
        })),
      ),
      ...(clears.value ?? []).map((clear) => ({
        at: Date.parse(clear.when_created) / 1e3,
        text: `cleared ${clearWords(clear)}`,
      })),
      ...(alerts.value ?? []).flatMap(({ text, domain: of, when_began: began }) =>
        of === null || of === domain
          ? [{ at: Date.parse(began) / 1e3, text: `alert: ${text}` }]
          : [],
      ),
    ];
    return all
      .filter((mark) => mark.at >= since && mark.at <= until)
      .toSorted((a, b) => a.at - b.at);
  }, [versions.value, clears.value, alerts.value, domain, since, until]);
}
