// The visitors of the leak hunt: each has cookies, credentials and habits of his own, and values that nobody else has. A request of his is made by chance and written for
// HTTP/1.1 or HTTP/2.

import type { Chance } from "./leaks-random.ts";
import type { AskedBy } from "./leaks-records.ts";
import { readCookies } from "./leaks-rules.ts";

type FieldLine = readonly [name: string, value: string];

export type Visitor = {
  readonly no: number;
  readonly fields: readonly FieldLine[];
  readonly cookie: string;
};

const desktop = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const phone =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1";

function cookiesOf(no: number, chance: Chance, values: Chance): string {
  const mine = `V${no}`;
  const all = [
    `session=${mine}`, `lang=${values.pick(["de", "fr", "en"])}`, `currency=${values.pick(["EUR", "USD"])}`, `theme=${values.pick(["light", "dark"])}`,
    `seen_a=1`, `seen_b=${mine}`, `_ga=${mine}`, `_fbp=${mine}`, `member=${mine}`, `PHPSESSID=${mine}`, `wordpress_logged_in_a1=${mine}`,
    `SESSab12=${mine}`, `woocommerce_cart_hash=${mine}`, `comment_author_a1=${mine}`, `NO_CACHE=Y`,
  ]; // prettier-ignore
  const shared = all.slice(1, 8);
  const some = chance.is(0.6) ? [...chance.some(shared, 0.3)] : [...chance.some(all, 0.15)];
  if (chance.is(0.05))
    some.push(
      chance.pick([
        `session="${mine}"`,
        mine,
        `seen_a=1, session=${mine}`,
        `lang=de; lang=${mine}`,
        `=${mine}`,
        `theme="x; member=${mine}"`,
        `lang="de"`,
      ]),
    );
  return some.toSorted(() => chance.next() - 0.5).join(chance.is(0.95) ? "; " : ";");
}

/** `chance` says which cookies and fields he has, `values` what they say: who has the same of the first sends heads that look alike. */
export function newVisitor(no: number, chance: Chance, values: Chance): Visitor {
  const mine = `V${no}`;
  const kind = chance.next();
  const cookie = kind < 0.45 ? "" : cookiesOf(no, chance, values);
  const language = values.pick(["de", "de, en;q=0.5", "DE,en;q=0.5", "en", "fr"]);
  const codings = chance.pick(["", "gzip", "gzip, br", "br, zstd", "gzip;q=0, br"]);
  const fields: FieldLine[] = [
    ["User-Agent", chance.pick([desktop, desktop, phone])],
    ["X-Who", String(no)],
  ];
  if (chance.is(0.7)) fields.push(["Accept-Language", language]);
  if (codings !== "") fields.push(["Accept-Encoding", codings]);
  if (chance.is(0.12)) fields.push(["Authorization", `Bearer ${mine}`]);
  if (chance.is(0.15)) fields.push(["X-Flavor", mine]);
  if (chance.is(0.4)) fields.push(["X-Group", values.pick(["a", "b"])]);
  if (chance.is(0.3))
    fields.push(["X-App", values.pick(["shop/2.7", "shop/2.0", "shop/1.0", mine])]);
  if (chance.is(0.04)) fields.push(["X-Original-URL", `/${mine}`]);
  if (chance.is(0.04)) fields.push(["X-HTTP-Method-Override", mine]);
  if (chance.is(0.04)) fields.push(["X-Forwarded-Scheme", mine]);
  return { no, cookie, fields };
}

/** What a visitor asks, in whole. */
export type LeakRequest = AskedBy & {
  /** As written, without pseudo-fields, Host and Cookie among them. */
  readonly lines: readonly FieldLine[];
  readonly target: string;
  readonly body: string;
};

export type AskedOf = {
  readonly domain: string;
  readonly path: string;
  readonly scheme: "http" | "https";
  readonly etag: string | undefined;
  /** Undefined: any. */
  readonly query: string | undefined;
};

const queryOf = (no: number, chance: Chance): string =>
  chance.is(0.7)
    ? ""
    : chance.pick([
        "id=1", "id=2", `utm_source=V${no}`, `id=1&utm_source=V${no}`, "b=2&a=1", "a=1&b=2", "preview=1", "add-to-cart=5", `page=${no % 3}`,
        "a=1&a=2", "a=2&a=1", "a[]=2&a=1", "A=1&b=2&a=2", `utm_source=V${no};id=2`, `ID=${7 + (no % 3)}`, `id[]=${7 + (no % 3)}`,
      ]); // prettier-ignore

export function newRequest(
  visitor: Visitor,
  { domain, path, scheme, etag, query: given }: AskedOf,
  chance: Chance,
): LeakRequest {
  const query = given ?? queryOf(visitor.no, chance);
  const hasLoneMark = query === "" && chance.is(0.01);
  const kind = chance.next();
  const method = kind < 0.03 ? "POST" : kind < 0.13 ? "HEAD" : "GET";
  const lines: FieldLine[] = [["Host", domain], ...visitor.fields];
  if (visitor.cookie !== "") lines.push(["Cookie", visitor.cookie]);
  if (chance.is(0.15)) {
    const words = chance.pick([
      "no-cache",
      "no-store",
      "max-age=0",
      "only-if-cached",
      "max-stale=60",
      "no-transform",
      "no-cache, no-store",
      "no-store, max-age=0",
    ]);
    lines.push(["Cache-Control", words]);
  }
  if (etag !== undefined && method !== "POST" && chance.is(0.2))
    lines.push(["If-None-Match", etag]);
  if (method === "GET" && chance.is(0.05))
    lines.push(["Range", chance.pick(["bytes=0-9", "bytes=5-", "bytes=-7"])]);
  // Whoever says this is not answered in one step.
  if (chance.is(0.1)) lines.push(["TE", "trailers"]);
  const body = method === "POST" ? `by V${visitor.no}` : "";
  if (method === "POST") lines.push(["Content-Length", String(body.length)]);
  return {
    who: visitor.no,
    domain,
    scheme,
    method,
    path,
    query,
    hasLoneMark,
    fields: new Map(lines.map(([name, value]): [string, string] => [name.toLowerCase(), value])),
    cookies: readCookies(visitor.cookie),
    lines,
    target: `${path}${query === "" ? (hasLoneMark ? "?" : "") : `?${query}`}`,
    body,
  };
}

/** Returns the request as bytes of HTTP/1.1. */
export function asHttp1({ method, target, lines, body }: LeakRequest): string {
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `${method} ${target} HTTP/1.1\r\n${head}\r\n${body}`;
}
