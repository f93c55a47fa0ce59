// Requests by chance: what browsers, bots, caches and balancers send, and some of what nobody should.

import type { Dice } from "./scenes.ts";

export type Paths = readonly [string, ...string[]];

export type AskedOf = {
  readonly method: string;
  readonly target: string;
  /** Names as a browser spells them; `Host` is one. A line of HTTP/1.1 each. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** No head that the lane takes: over HTTP/1.1 its connection is node's from here on. */
  readonly isOdd: boolean;
};

/** What stands for the port that is listened on. */
export const portSign = "{port}";

const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const userAgents = [
  firefox, firefox, firefox, "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
  "curl/8.5.0", "Wget/1.21", "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
] as const; // prettier-ignore
const hosts = [
  ...Array.from({ length: 40 }, () => "www.example.com"), ...Array.from({ length: 6 }, () => "shop.example.com"),
  "WWW.Example.com", `www.example.com:${portSign}`, "www.example.com:8443", "www.example.com:80", "bare.example.com",
  "unknown.example", "127.0.0.1", "localhost", "a_b.example.com", "www.example.com.", "[::1]",
] as unknown as Paths; // prettier-ignore
export const addresses = [
  "192.0.2.9", "192.0.2.200", "198.51.100.7", "203.0.113.7", "203.0.113.8", "2001:db8::7",
] as const; // prettier-ignore

export const paths = [
  "/", "/a", "/a", "/a", "/b", "/c/d", "/q/p", "/r/s", "/r/t", "/img/x.png", "/img/x.png", "/photo.JPG", "/app.css", "/%61", "/a//b", "/a;v=1",
] as const; // prettier-ignore
const otherPaths = [
  "/old/x", "/gone", "/api/x", "/style.css", "/docs", "/docs/", "/docs/deep/a%20b.txt", "/empty.txt", "/.secret", "/../a", "/%2e%2e/a",
  "/nowhere", "/fresh.txt", "/big.txt", "/404.html", "/%00", "/%zz",
] as const; // prettier-ignore
const queries = [...Array.from({ length: 24 }, () => ""), "?x=1", "?id=1", "?utm_source=z", "?utm_source=z&x=1", "?id=1&z=2", "?", "?x=%31", "?width=640", "?width=320", "?x=1&width=640", "?width=641", "?width=640&width=320"] as unknown as Paths; // prettier-ignore

const accepts = [
  "*/*", "text/html,*/*;q=0.8", "image/avif,image/webp,*/*;q=0.8", "image/avif,image/webp,*/*;q=0.8", "image/avif,image/webp,image/apng,image/*,*/*;q=0.8", "image/webp,*/*;q=0.5",
  "image/avif;q=0.3,image/webp;q=0.9", "image/*", "image/avif;q=0, image/webp",
] as const; // prettier-ignore

export const languages = ["de", "en", "DE, en;q=0.5"] as const;
export const codings = [
  "gzip, deflate, br, zstd", "gzip", "br;q=0, gzip", "identity", "*", "gzip;q=0.5, br;q=0.7", "",
] as const; // prettier-ignore
export const cookies = [
  "_ga=GA1.2.3", "session=1", "ab_x=1; _ga=2", "session=1; ab_y=2", "lang=de", "lang=de; _ga=GA1.2.3", "ab_x=1; lang=fr",
  "lang=de; session=1", "lang=de; lang=fr",
] as const; // prettier-ignore
export const devices = ["m", "d"] as const;

type Line = readonly [name: string, value: string];

function targetOf(dice: Dice, hot: Paths): string {
  if (dice.happens(0.005)) return `/${"long".repeat(dice.one([511, 512, 600]))}`;
  const path = dice.happens(0.9) ? dice.one(hot) : dice.one([...paths, ...otherPaths]);
  return path + dice.one(queries);
}

/** What one browser sends with each of its requests. */
export function visitorOf(dice: Dice): readonly Line[] {
  const said: Line[] = [];
  if (dice.happens(0.95)) said.push(["User-Agent", dice.one(userAgents)]);
  if (dice.happens(0.8)) said.push(["Accept-Encoding", dice.one(codings)]);
  if (dice.happens(0.6)) said.push(["Accept-Language", dice.one(languages)]);
  if (dice.happens(0.75)) said.push(["Accept", dice.one(accepts)]);
  if (dice.happens(0.12)) said.push(["Cookie", dice.one(cookies)]);
  if (dice.happens(0.3)) said.push([dice.one(["X-Device", "x-device"]), dice.one(devices)]);
  if (dice.happens(0.2)) said.push(["Connection", dice.one(["keep-alive", "Keep-Alive"])]);
  return said;
}

const conditions: readonly [Line, ...Line[]] = [
  ["If-None-Match", '"v1"'],
  ["If-None-Match", 'W/"v1"'],
  ["If-None-Match", '"v1-gzip"'],
  ["If-None-Match", '"v1-br", "x"'],
  ["If-None-Match", '"v1-avif"'],
  ["If-None-Match", '"v1-webp", "v1-avif"'],
  ["If-None-Match", '"v1-same-640", "v1-webp-640"'],
  ["If-None-Match", "*"],
  ["If-None-Match", '"v2"'],
  ["If-None-Match", "v1"],
  ["If-Modified-Since", "Mon, 01 Jan 2029 00:00:00 GMT"],
  ["If-Modified-Since", "Mon, 01 Jan 2029 00:00:01 GMT"],
  ["If-Modified-Since", "Wed, 01 Jan 2025 00:00:00 GMT"],
  ["If-Modified-Since", "yesterday"],
];
const pipelined: readonly [Line, ...Line[]] = [
  ["Cache-Control", "no-cache"],
  ["Cache-Control", "max-age=0"],
  ["Cache-Control", "only-if-cached"],
  ["Cache-Control", "max-stale"],
  ["Pragma", "no-cache"],
  ["Range", "bytes=0-4"],
  ["Range", "bytes=999999-"],
  ["If-Range", '"v1"'],
  ["Authorization", "Basic eDp5"],
  ["Via", "1.1 p"],
  ["If-Match", '"v1"'],
  ["If-Unmodified-Since", "Mon, 01 Jan 2029 00:00:00 GMT"],
  ["Max-Forwards", "3"],
];
const forwards: readonly [Line, ...Line[]] = [
  ["X-Forwarded-Proto", "https"],
  ["X-Forwarded-Proto", "http"],
  ["X-Forwarded-Proto", "HTTPS"],
  ["Forwarded", "for=192.0.2.9;proto=https"],
  ["Forwarded", 'for="[2001:db8::7]:80"'],
  ["Forwarded", "for=10.0.0.1, for=unknown"],
];
/** One of these makes a head odd, over HTTP/1.1. */
const odds: readonly [Line, ...Line[]] = [
  ["TE", "trailers"],
  ["Keep-Alive", "5"],
  ["Upgrade", "h2c"],
  ["Content-Length", "0"],
  ["Proxy-Connection", "close"],
  ["X-Latin", "caf\u00e9"],
];

/** A request of the visitor; most are of the `hot` paths. */
export function requestOf(dice: Dice, visitor: readonly Line[], hot: Paths): AskedOf {
  let said: readonly Line[] = [["Host", dice.one(hosts)], ...visitor];
  const instead = (...lines: readonly Line[]): void => {
    const names = new Set(lines.map(([name]) => name.toLowerCase()));
    said = [...said.filter(([name]) => !names.has(name.toLowerCase())), ...lines];
  };
  if (dice.happens(0.15)) instead(...visitorOf(dice));
  if (dice.happens(0.2)) instead(dice.one(conditions));
  if (dice.happens(0.01)) instead(dice.one(conditions), dice.one(conditions));
  if (dice.happens(0.03)) instead(dice.one(pipelined));
  if (dice.happens(0.2)) {
    const list = [dice.one(addresses), ...(dice.happens(0.3) ? ["10.0.0.9"] : [])];
    instead(["X-Forwarded-For", dice.happens(0.05) ? "unknown" : list.join(", ")]);
  }
  if (dice.happens(0.08)) instead(dice.one(forwards));
  if (dice.happens(0.03)) instead(["Connection", "close"]);
  const method = dice.happens(0.86) ? "GET" : dice.happens(0.95) ? "HEAD" : dice.one(["POST", "OPTIONS", "PUT", "DELETE"]); // prettier-ignore
  const body = method === "POST" || method === "PUT" ? dice.one(["", "abc"]) : "";
  const hasOddField = dice.happens(0.005);
  if (hasOddField) instead(dice.one(odds));
  if (body !== "") instead(["Content-Length", `${body.length}`]);
  const target = targetOf(dice, hot);
  const isRead = method === "GET" || method === "HEAD";
  // Two lines of one name are for the pipeline's careful eye.
  const isDouble = new Set(said.map(([name]) => name.toLowerCase())).size < said.length;
  const isOdd = hasOddField || !isRead || isDouble || target.length > 2_048;
  return { method, target, fields: said, body, isOdd };
}
