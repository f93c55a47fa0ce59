// What the console asks of the numbers of a domain (src/console/pages/traffic.tsx, overview.tsx, parts/top-list.tsx), and two days by the minute, which is the
// largest answer that there is.

import { spans } from "../../src/console/traffic-window.ts";
import { topLists } from "../../src/wire/customer/analytics.ts";

export type View = {
  readonly name: string;
  /** The query, of a time in seconds since the epoch. */
  readonly query: (nowS: number) => string;
};

const tallies = ["cache", "status", "reason"] as const;
/** As parts/top-list.tsx asks: by the hour while that is kept. */
const hoursKeptS = 6 * 86_400;
const twoDaysS = 2 * 86_400;

export const views: readonly View[] = [
  ...spans.flatMap(([span, , lengthS]) => [
    ...tallies.map((by) => ({
      name: `${span} by ${by}`,
      query: (nowS: number) => `by=${by}&since=${nowS - lengthS}&until=${nowS}`,
    })),
    ...Object.keys(topLists).map((by) => ({
      name: `${span} ${by}`,
      query: (nowS: number) =>
        `by=${by}&since=${nowS - lengthS}&until=${nowS}&step=${lengthS > hoursKeptS ? "day" : "hour"}`,
    })),
  ]),
  ...tallies.map((by) => ({
    name: `two days by minute by ${by}`,
    query: (nowS: number) => `by=${by}&since=${nowS - twoDaysS}&until=${nowS}&step=minute`,
  })),
  { name: "overview, by status", query: () => "by=status&step=hour" },
  { name: "overview, by cache", query: () => "by=cache&step=day" },
];
