// The stretch of time that a traffic page shows: a span until now, or two moments that were dragged or stepped to.

export const spans = [
  ["1h", "Hour", 3_600],
  ["6h", "6 hours", 21_600],
  ["1d", "Day", 86_400],
  ["7d", "Week", 604_800],
  ["30d", "30 days", 2_592_000],
  ["90d", "90 days", 7_776_000],
] as const;

export type TrafficWindow = {
  /** Seconds since the epoch. */
  readonly since: number;
  readonly until: number;
  /** The span that goes on with the time; undefined for two moments. */
  readonly span: string | undefined;
};

const usual = "1d";
/** A minute is the finest that is kept. */
const leastSeconds = 120;

/** Reads the window of an address. What is no window there counts as the last day. */
export function windowOf(query: URLSearchParams, nowS: number): TrafficWindow {
  const [since, until] = [Number(query.get("since")), Number(query.get("until"))];
  if (Number.isFinite(since) && since > 0 && until > since)
    return { since, until, span: undefined };
  const asked = query.get("span");
  const [name, , length] =
    spans.find(([one]) => one === asked) ?? spans.find(([one]) => one === usual) ?? spans[2];
  return { since: nowS - length, until: nowS, span: name };
}

/** Widens what was dragged to whole seconds, and to the finest that there are numbers for. */
export function draggedWindow(
  since: number,
  until: number,
): { readonly since: number; readonly until: number } {
  const middle = (since + until) / 2;
  const half = Math.max(until - since, leastSeconds) / 2;
  return { since: Math.floor(middle - half), until: Math.ceil(middle + half) };
}
