// Requests of one domain as they might be: paths of which few are asked often, addresses, bots, answers from the cache and from an origin, with times to
// match. And the ledger of them: what was sent, kept apart from everything that the programs count.

import { randomFrom } from "../../test/support/log-oracle-run.ts";
/** What may become of a request, and how often it does. */
type Outcome = {
  readonly share: number;
  readonly status: number;
  readonly cache: string;
  readonly verdict: string;
  readonly bot: boolean;
  readonly asksOrigin: boolean;
};

const outcome = (
  share: number,
  status: number,
  cache: string,
  verdict: string,
  asksOrigin = cache === "miss" || cache === "pass",
): Outcome => ({
  share,
  status,
  cache,
  verdict,
  bot: !verdict.endsWith("not-a-bot"),
  asksOrigin,
});

export const outcomes: readonly Outcome[] = [
  outcome(55, 200, "hit", "allow not-a-bot"),
  outcome(6, 304, "hit", "allow not-a-bot"),
  outcome(2, 200, "stale", "allow not-a-bot"),
  outcome(12, 200, "miss", "allow not-a-bot"),
  outcome(6, 200, "pass", "allow not-a-bot"),
  outcome(1, 301, "miss", "allow not-a-bot"),
  outcome(3, 404, "miss", "allow not-a-bot"),
  outcome(0.3, 500, "miss", "allow not-a-bot"),
  outcome(0.3, 502, "pass", "allow not-a-bot"),
  outcome(0.4, 503, "none", "allow not-a-bot"),
  outcome(4, 200, "hit", "allow vip-set"),
  outcome(4, 200, "miss", "allow unreviewed-allowed"),
  outcome(1, 200, "hit", "allow allow-pair"),
  outcome(3, 403, "blocked", "block bad-set"),
  outcome(1, 403, "blocked", "block deny-pair"),
  outcome(1, 200, "hit", "would-block unreviewed-blocked"),
];

const bots = [
  "Googlebot",
  "Bingbot",
  "GPTBot",
  "AhrefsBot",
  "SemrushBot",
  "Applebot",
  "YandexBot",
  "Bytespider",
  "ClaudeBot",
  "facebookexternalhit",
] as const;
const sections = ["articles", "products", "images", "assets", "search", "news", "de", "en"];
const pathsCount = 5_000;
const addressesCount = 20_000;
const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const minuteS = 60;

/** `line` is the record as an agent sends it, with a line feed. */
type Sent = {
  readonly line: string;
  readonly whenS: number;
  readonly outcomeNo: number;
  readonly bytes: number;
  readonly pathNo: number;
};

export type Batch = { readonly body: Buffer; readonly sent: readonly Sent[] };

export const pathOf = (no: number): string =>
  `/${sections[no % sections.length]}/${(no * 2_654_435_761) % 2 ** 32}/page-${no}.html`;

export class Traffic {
  readonly domain: string;
  readonly #random: () => number;
  readonly #chances: readonly number[];
  #connection = 0;

  constructor(domain: string, seed: number) {
    this.domain = domain;
    this.#random = randomFrom(seed);
    const all = outcomes.reduce((sum, { share }) => sum + share, 0);
    let upTo = 0;
    this.#chances = outcomes.map(({ share }) => (upTo += share / all));
  }

  /** Makes requests at an even rate from one time to another, in seconds since the epoch. */
  batch(count: number, fromS: number, toS: number): Batch {
    const sent: Sent[] = [];
    let text = "";
    for (let no = 0; no < count; no++) {
      const one = this.#request(fromS + ((toS - fromS) * (no + this.#random())) / count);
      sent.push(one);
      text += one.line;
    }
    return { body: Buffer.from(text), sent };
  }

  #request(at: number): Sent {
    const random = this.#random;
    const whenS = Math.round(at * 1e6) / 1e6;
    const chance = random();
    const outcomeNo = Math.max(
      0,
      this.#chances.findIndex((upTo) => chance < upTo),
    );
    const { status, cache, verdict, bot, asksOrigin } =
      outcomes[outcomeNo] ?? outcome(0, 0, "", "");
    const pathNo = Math.floor(pathsCount * random() ** 3);
    const address = Math.floor(addressesCount * random() ** 2);
    const bytes = status === 304 ? 180 : Math.round(400 + 20_000 * this.#spread(1.2));
    const origin = asksOrigin ? Math.round(6e4 * this.#spread(0.8)) / 1e6 : 0;
    const duration = Math.round(1e6 * origin + 700 * this.#spread(0.9)) / 1e6;
    const name = bot ? `"${bots[Math.floor(bots.length * random() ** 2)]}"` : "null";
    const line =
      `{"connection":${this.#connection++},"response_status":${status},"request_method":"GET","uri_path":"${pathOf(pathNo)}?v=${pathNo % 7}",` +
      `"backend_time":${origin},"when":${whenS},"authority":"${this.domain}","domain":"${this.domain}",` +
      `"client_ip":"198.51.${address >> 8}.${address & 255}","bytes_sent":${bytes},"duration":${duration},"cache":"${cache}",` +
      `"verdict":"${verdict}","bot":${name},"user_agent":"${browser}"}\n`;
    return { line, whenS, outcomeNo, bytes, pathNo };
  }

  /** A factor around 1, spread as times and sizes are: log-normal. */
  #spread(sigma: number): number {
    const normal =
      Math.sqrt(-2 * Math.log(1 - this.#random())) * Math.cos(2 * Math.PI * this.#random());
    return Math.exp(sigma * normal);
  }
}

/** What a span of the ledger adds up to, named as in answers of the API. */
export type Sums = {
  readonly requests: number;
  readonly hits: number;
  readonly bytes: number;
  readonly saved_bytes: number;
  readonly counts: Readonly<Record<string, number>>;
};

export class Ledger {
  /** By minute: requests of each outcome, and behind them their bytes. */
  readonly #minutes = new Map<number, Float64Array>();
  readonly #paths = new Float64Array(pathsCount);

  add({ sent }: Batch, times = 1): void {
    for (const { whenS, outcomeNo, bytes, pathNo } of sent) {
      const minute = Math.floor(whenS / minuteS);
      let cells = this.#minutes.get(minute);
      if (cells === undefined) {
        cells = new Float64Array(2 * outcomes.length);
        this.#minutes.set(minute, cells);
      }
      cells[outcomeNo] = (cells[outcomeNo] ?? 0) + times;
      const place = outcomes.length + outcomeNo;
      cells[place] = (cells[place] ?? 0) + times * bytes;
      this.#paths[pathNo] = (this.#paths[pathNo] ?? 0) + times;
    }
  }

  /** What no longer lies in the logs. */
  takeBack(batch: Batch): void {
    this.add(batch, -1);
  }

  /** By path, of all times. */
  paths(): ReadonlyMap<string, number> {
    return new Map(Array.from(this.#paths, (count, no) => [pathOf(no), count]));
  }

  /** The sums of each span that has requests, by when it begins. */
  spans(spanS: number, by: "status" | "cache" | "reason"): ReadonlyMap<number, Sums> {
    const spans = new Map<number, Float64Array>();
    for (const [minute, cells] of this.#minutes) {
      const at = Math.floor((minute * minuteS) / spanS) * spanS;
      const sum = spans.get(at) ?? new Float64Array(cells.length);
      for (const [no, value] of cells.entries()) sum[no] = (sum[no] ?? 0) + value;
      spans.set(at, sum);
    }
    return new Map([...spans].map(([at, cells]) => [at, sumsOf(cells, by)]));
  }
}

function sumsOf(cells: Float64Array, by: "status" | "cache" | "reason"): Sums {
  let [requests, hits, bytes, saved] = [0, 0, 0, 0];
  const counts: Record<string, number> = {};
  for (const [no, { status, cache, verdict }] of outcomes.entries()) {
    const [count, sent] = [cells[no] ?? 0, cells[outcomes.length + no] ?? 0];
    if (count === 0) continue;
    requests += count;
    bytes += sent;
    if (cache === "hit" || cache === "stale") {
      hits += count;
      saved += sent;
    }
    const name = { status: String(status), cache, reason: verdict.split(" ")[1] ?? "" }[by];
    counts[name] = (counts[name] ?? 0) + count;
  }
  return { requests, hits, bytes, saved_bytes: saved, counts };
}
