// The last hour on the status page: the figures of now, and a plot of each series as SVG. What a plot shows stands beside it in words, for terminal browsers and
// screen readers; the drawing is hidden from both.

import { durationText, percentText, shortNumber, sizeText } from "../../core/quantities.ts";
import {
  holesOf,
  runsOf,
  summaryOf,
  type HourPoint,
  type HourSeries,
  type HourView,
  type MetricsReading,
} from "./last-hour.ts";
import { plainHtml } from "./page-facts.ts";

type Drawn = {
  readonly name: string;
  /** What the figure is, where its name does not say it. */
  readonly about: string;
  readonly text: (value: number) => string;
  /** The upper end of the plot of a series whose largest value is this. */
  readonly top: (most: number) => number;
};

/** In the order in which they are shown. */
const drawn: Readonly<Record<HourSeries, Drawn>> = {
  requestRate: { name: "Requests a second", about: "answered", text: shortNumber, top: roundTop },
  hitRatio: {
    name: "Hit ratio",
    about: "of all requests, from the cache",
    text: (share) => percentText(share, 1),
    top: () => 1,
  },
  originS: {
    name: "Origin time",
    about: "to the head of its answer, on average",
    text: durationText,
    top: roundTime,
  },
  blockedRate: {
    name: "Blocked a second",
    about: "by the verdict on the visitor",
    text: shortNumber,
    top: roundTop,
  },
  waiting: {
    name: "Records waiting",
    about: "that central does not have",
    text: shortNumber,
    top: roundTop,
  },
  oldestS: {
    name: "Oldest record waiting",
    about: "how long it has waited",
    text: durationText,
    top: roundTime,
  },
  journalLag: {
    name: "Behind the journal",
    about: "entries that are not done",
    text: shortNumber,
    top: roundTop,
  },
  canaryAgeS: {
    name: "Log canary",
    about: "age of the newest that central has",
    text: durationText,
    top: roundTime,
  },
};
// Object.entries forgets which keys there are.
const drawnSeries = Object.entries(drawn) as readonly (readonly [HourSeries, Drawn])[];

/** Returns the next of 1, 2, 5, 10, 20 … that is not below. */
export function roundTop(most: number): number {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return power * ([1, 2, 5].find((step) => most <= step * power) ?? 10);
}

/** Minutes, hours and days are no powers of ten. */
const roundTimesS = [
  60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 18_000, 43_200, 86_400, 172_800,
];

/** Returns the next round time, in seconds, that is not below. */
export function roundTime(mostS: number): number {
  if (mostS <= 50) return roundTop(mostS);
  return roundTimesS.find((step) => mostS <= step) ?? roundTop(mostS / 86_400) * 86_400;
}

const known = (value: number, text: (value: number) => string): string =>
  Number.isNaN(value) ? "–" : text(value);

/** The time of day in UTC, to the minute. */
const clockOf = (ms: number): string => new Date(ms).toISOString().slice(11, 16);
const minuteMs = 60_000;

/** Writes the figures of now. `link` is how the link to central is. */
export function tilesHtml(view: HourView, link: string): string {
  const { latest } = view;
  if (latest === undefined)
    return "<p>Nothing was measured within the last half minute; the first figures come at once after a start, rates 15 s later.</p>";
  const notes = notesOf(latest.reading, link);
  const tiles = drawnSeries.flatMap(([series, { name, about, text }]) => {
    const note = notes[series];
    if (note === null) return [];
    const value = known(view.values[series].at(-1) ?? Number.NaN, text);
    return `<div><dt>${name}</dt><dd><b>${value}</b></dd><dd><small>${note ?? about}</small></dd></div>`;
  });
  const at = new Date(latest.atMs).toISOString();
  return `<p class="quiet">Measured at <time datetime="${at}">${at.slice(11, 19)} UTC</time>, rates over the 15 s before.</p><dl class="tiles">${tiles.join("\n")}</dl>`;
}

/** What stands below a figure instead of what it is; null where it is told beside another one. */
function notesOf(
  { spoolBytes, oldestS, waiting, originWaits }: MetricsReading,
  link: string,
): Readonly<Partial<Record<HourSeries, string | null>>> {
  const oldest = waiting > 0 ? `, the oldest for ${durationText(oldestS)}` : "";
  return {
    waiting: `for central, ${known(spoolBytes, sizeText)} on disk${oldest}`,
    oldestS: null,
    journalLag: `link: ${plainHtml(link)}`,
    ...(originWaits === 0 && { originS: "no origin was asked yet" }),
  };
}

/** Writes the plots of the hour before `view.nowMs`. */
export function plotsHtml(view: HourView): string {
  const untilMs = Math.ceil(view.nowMs / minuteMs) * minuteMs;
  const span = { fromMs: untilMs - 60 * minuteMs, untilMs };
  const plots = drawnSeries.map(([series, figure]) => plotHtml(view, series, figure, span));
  return `${whenHtml(view)}<div class="plots">${plots.join("\n")}</div>`;
}

function whenHtml({ atMs }: HourView): string {
  const [first] = atMs;
  if (first === undefined) return "";
  const holes = holesOf(atMs).map(
    ({ fromMs, untilMs }) => `from ${clockOf(fromMs)} to ${clockOf(untilMs)}`,
  );
  const missing = holes.length === 0 ? "" : ` Nothing was measured ${holes.join(", ")}.`;
  return `<p class="quiet">A sample every 15 s since ${clockOf(first)} UTC, kept in memory: a restart begins anew.${missing}</p>`;
}

type Span = { readonly fromMs: number; readonly untilMs: number };

function plotHtml(
  view: HourView,
  series: HourSeries,
  { name, about, text, top: topOf }: Drawn,
  span: Span,
): string {
  const summary = summaryOf(view, series);
  const caption = (words: string): string =>
    `<figcaption><h3>${name} <small>${about}</small></h3><p>${words}</p></figcaption>`;
  if (summary === undefined) return `<figure>${caption("nothing known yet")}</figure>`;
  const { now, least, most } = summary;
  const at = ({ value, atMs }: HourPoint): string => `${text(value)} at ${clockOf(atMs)}`;
  const range =
    least.value === most.value
      ? `${text(most.value)} all the time`
      : `least ${at(least)}, most ${at(most)}`;
  const top = topOf(most.value);
  const marks = (values: readonly string[]): string =>
    values.map((value) => `<span data-text="${value}"></span>`).join("");
  const quarters = [0, 15, 30, 45, 60].map((minutes) => clockOf(span.fromMs + minutes * minuteMs));
  return `<figure>${caption(`now <b>${known(now, text)}</b>, ${range}`)}<div class="plot" aria-hidden="true"><div class="marks up">${marks([text(top), text(0)])}</div>${svgOf(runsOf(view, series), span, top)}<div class="marks along">${marks(quarters)}</div></div></figure>`;
}

/** The drawing's own units; it is stretched to its place, its lines are not. */
const [width, height] = [1_000, 100];
const gridPath = `M0 0H${width}M0 ${height / 2}H${width}M0 ${height}H${width}${[0, 1, 2, 3, 4].map((quarter) => `M${(quarter * width) / 4} 0V${height}`).join("")}`;

function svgOf(runs: readonly (readonly HourPoint[])[], span: Span, top: number): string {
  const { line, area } = pathsOf(runs, span, top);
  const stroke = 'vector-effect="non-scaling-stroke"';
  return `<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" focusable="false"><path class="grid" ${stroke} d="${gridPath}"/><path class="below" d="${area}"/><path class="run" ${stroke} d="${line}"/></svg>`;
}

/** Makes the line through each run and the area below it. A point alone is drawn as a dot. */
export function pathsOf(
  runs: readonly (readonly HourPoint[])[],
  { fromMs, untilMs }: Span,
  top: number,
): { readonly line: string; readonly area: string } {
  const x = (atMs: number): number => coordinate(((atMs - fromMs) / (untilMs - fromMs)) * width);
  const y = (value: number): number => coordinate(height - (value / top) * height);
  const inside = runs
    .map((run) => run.filter(({ atMs }) => atMs >= fromMs && atMs <= untilMs))
    .filter((run) => run.length > 0);
  const lines = inside.map((run) => {
    const points = run.map(({ atMs, value }) => `${x(atMs)} ${y(value)}`).join("L");
    return { run, points: run.length === 1 ? `${points}h0` : points };
  });
  return {
    line: lines.map(({ points }) => `M${points}`).join(""),
    area: lines
      .map(({ run, points }) => {
        const [first, last] = [run[0]?.atMs ?? fromMs, run.at(-1)?.atMs ?? fromMs];
        return `M${x(first)} ${height}L${points}L${x(last)} ${height}Z`;
      })
      .join(""),
  };
}

const coordinate = (value: number): number => Math.round(value * 10) / 10;

/** Says of which zone the times are, and what the host's own clock shows. `zone` is an IANA name. */
export function zoneText(nowMs: number, zone: string): string {
  const { clock, offset } = localTime(nowMs, zone);
  if (/^GMT(?:[+-]00:00)?$/.test(offset))
    return `Times are UTC, and so are the host's (zone ${zone}).`;
  return `Times are UTC. The host's zone is ${zone} (${offset.replace("GMT", "UTC")}): it is ${clock} there.`;
}

function localTime(
  nowMs: number,
  timeZone: string,
): { readonly clock: string; readonly offset: string } {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    hour: "2-digit",
    minute: "2-digit",
    timeZoneName: "longOffset",
  });
  const parts = new Map(format.formatToParts(nowMs).map(({ type, value }) => [type, value]));
  return {
    clock: `${parts.get("hour") ?? ""}:${parts.get("minute") ?? ""}`,
    offset: parts.get("timeZoneName") ?? "GMT",
  };
}
