// The rows of `bench serve`: what visitors ask, what must come back, and how much of nginx's CPU it may take.

import type { LoopOptions, Requests } from "./load.ts";
import { etag } from "./origin.ts";

export const host = "www.example.com";
/** Its origin speaks TLS. */
export const tlsOriginHost = "tls.example.com";
/** Beside a host with limits: the same origin, rules of the cache and bad addresses, without limits. It has no files. */
export const openHost = "open.example.com";
export const trustedProxy = "127.0.0.2";
export const badAddress = "127.0.0.3";

/** The files of the site, by name. */
export const fileBytes = {
  "4k.html": 4_096,
  "256k.html": 262_144,
  "10m.html": 10_485_760,
} as const;

export type Case = {
  readonly name: string;
  readonly title: string;
  /** nginx's CPU by ours, at least. */
  readonly required: number;
  readonly aimedAt: number;
  /** Bare Node's CPU by ours, at least, where that is asked for. */
  readonly requiredOfBare?: number;
  readonly requests: Requests;
  readonly status: number;
  readonly by: "http" | "https" | "http2";
  readonly from?: string;
  readonly connections: number;
  readonly first?: string;
  readonly isNewEach?: boolean;
  /** For HTTP/2, in place of `requests`. */
  readonly path?: (no: number) => string;
};

/** As Chrome sends it: 13 fields beside Host. */
const browserFields = [
  "Connection: keep-alive",
  'sec-ch-ua: "Chromium";v="140", "Not=A?Brand";v="24", "Google Chrome";v="140"',
  "sec-ch-ua-mobile: ?0",
  'sec-ch-ua-platform: "Linux"',
  "Upgrade-Insecure-Requests: 1",
  "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
  "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
  "Sec-Fetch-Site: same-origin",
  "Sec-Fetch-Mode: navigate",
  "Sec-Fetch-User: ?1",
  "Sec-Fetch-Dest: document",
  "Accept-Encoding: gzip, deflate, br, zstd",
  "Accept-Language: de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7",
];
const scraperFields = browserFields.map((field) =>
  field.startsWith("User-Agent") ? "User-Agent: ExampleScraper/1.0" : field,
);

function get(
  path: string,
  more: readonly string[] = [],
  fields = browserFields,
  of = host,
): string {
  return [`GET ${path} HTTP/1.1`, `Host: ${of}`, ...fields, ...more, "", ""].join("\r\n");
}

const post = [
  "POST /post HTTP/1.1",
  `Host: ${host}`,
  ...browserFields,
  "Content-Type: application/octet-stream",
  "Content-Length: 1024",
  "",
  "y".repeat(1_024),
].join("\r\n");

/** The same text for each request. */
const always = (request: string): Requests => {
  const bytes = Buffer.from(request);
  return () => bytes;
};
/** Made before, so that the client's cost is the same whatever the case. */
const among = (count: number, request: (no: number) => string): Requests => {
  const all = Array.from({ length: count }, (_, no) => Buffer.from(request(no)));
  return (no) => all[no % count] ?? "";
};
/** No two rounds ask for the same URL. */
let unique = 0;
const once =
  (request: (no: string) => string): Requests =>
  () =>
    request(`${process.pid}-${unique++}`);

const hit = get("/hit/0");
/** Twelve of the published list, and one that the rule ignores. */
const analytics =
  "Cookie: _ga=GA1.2.1387042913.1764077312; _gid=GA1.2.811290347.1764077312; _gat_UA-12345-1=1; _gcl_au=1.1.1690023741.1764077312; _fbp=fb.1.1764077312345.1029384756; _fbc=fb.1.1764077312345.IwAR0abc; _clck=1x2y3z%7C2%7Cfmx%7C0%7C1401; _clsk=1q2w3e%7C1764077313%7C1%7C1; _uetsid=0a1b2c3d4e5f; _uetvid=5f4e3d2c1b0a; hubspotutk=9d8c7b6a5f4e3d2c1b0a9d8c7b6a5f4e; OptanonConsent=isGpcEnabled=0&groups=C0001%3A1; theme=dark";
const usual = { status: 200, by: "http", connections: 64 } as const;

export const cases: readonly Case[] = [
  {
    ...usual,
    name: "hit",
    title: "cached hit, 4 KiB, one URL",
    required: 1.15,
    aimedAt: 1.25,
    requests: always(hit),
  },
  {
    ...usual,
    name: "hit-1000",
    title: "cached hit, 4 KiB, 1,000 URLs",
    required: 1.15,
    aimedAt: 1.25,
    requests: among(1_000, (no) => get(`/hit/${no}`)),
  },
  {
    ...usual,
    name: "hit-vary",
    title: "cached hit, Vary: Accept-Language",
    required: 1.15,
    aimedAt: 1.25,
    requests: always(get("/vary/0")),
  },
  {
    ...usual,
    name: "hit-cookies",
    title: "hit with twelve analytics cookies",
    required: 1.1,
    aimedAt: 1.25,
    requests: always(get("/ruled/0", [analytics])),
  },
  {
    ...usual,
    name: "hit-proxied",
    title: "cached hit behind a trusted proxy, one client a request",
    required: 1,
    aimedAt: 1.15,
    from: trustedProxy,
    requests: among(1_000, (no) =>
      get("/hit/0", [`X-Forwarded-For: 198.51.${100 + (no >> 8)}.${no & 255}`]),
    ),
  },
  {
    ...usual,
    name: "file",
    title: "viewset file, 4 KiB",
    required: 1.15,
    aimedAt: 1.25,
    requests: always(get("/files/4k.html")),
  },
  {
    ...usual,
    name: "hit-tls",
    title: "cached hit over TLS, HTTP/1.1",
    required: 0.95,
    aimedAt: 1,
    by: "https",
    requests: always(hit),
  },
  {
    ...usual,
    name: "not-modified",
    title: "304",
    required: 0.8,
    aimedAt: 0.9,
    status: 304,
    requests: always(get("/hit/0", [`If-None-Match: ${etag}`])),
  },
  {
    ...usual,
    name: "blocked-address",
    title: "403 by address",
    required: 0.65,
    aimedAt: 0.9,
    status: 403,
    from: badAddress,
    requests: always(hit),
  },
  {
    ...usual,
    name: "blocked-agent",
    title: "403 by user agent",
    required: 0.65,
    aimedAt: 0.9,
    status: 403,
    requests: always(get("/hit/0", [], scraperFields)),
  },
  {
    ...usual,
    name: "hit-after-post",
    title: "cached hit on a connection that had a POST",
    required: 0.5,
    aimedAt: 0.6,
    first: post,
    requests: always(hit),
  },
  {
    ...usual,
    name: "hit-http2",
    title: "cached hit over HTTP/2 and TLS",
    required: 0.5,
    aimedAt: 0.6,
    requiredOfBare: 0.85,
    by: "http2",
    requests: always(hit),
    path: () => "/hit/0",
  },
  {
    ...usual,
    name: "uncached",
    title: "uncached, 4 KiB, a new URL each time",
    required: 0.6,
    aimedAt: 0.75,
    requests: once((no) => get(`/private/${no}`)),
  },
  {
    ...usual,
    name: "miss",
    title: "a storable miss, 4 KiB, a new URL each time",
    required: 0.6,
    aimedAt: 0.75,
    requests: once((no) => get(`/store/${no}`)),
  },
  {
    ...usual,
    name: "uncached-1m",
    title: "uncached, 1 MiB",
    required: 0.6,
    aimedAt: 0.75,
    connections: 16,
    requests: once((no) => get(`/mega/${no}`)),
  },
  {
    ...usual,
    name: "post",
    title: "POST with 1 KiB",
    required: 0.4,
    aimedAt: 0.6,
    requests: always(post),
  },
  {
    ...usual,
    name: "uncached-tls",
    title: "uncached, 4 KiB, from a TLS origin",
    required: 0.4,
    aimedAt: 0.6,
    requests: once((no) => get(`/private/${no}`, [], browserFields, tlsOriginHost)),
  },
  {
    ...usual,
    name: "file-256k",
    title: "viewset file, 256 KiB",
    required: 0.4,
    aimedAt: 0.5,
    connections: 16,
    requests: always(get("/files/256k.html")),
  },
  {
    ...usual,
    name: "file-10m",
    title: "viewset file, 10 MiB",
    required: 0.25,
    aimedAt: 0.3,
    connections: 8,
    requests: always(get("/files/10m.html")),
  },
  {
    ...usual,
    name: "new-connection",
    title: "cached hit, a new connection for each request",
    required: 0.45,
    aimedAt: 0.6,
    isNewEach: true,
    requests: always(hit),
  },
];

/** At a fixed rate: at most so many times nginx's p50 and p99, and p99.9 within so many times or so many milliseconds more. */
export const paced = {
  perSecond: 2_000,
  connections: 64,
  requests: always(hit),
  status: 200,
  required: { times: 1.25, p999Times: 1.5, p999MoreMs: 10 },
} as const;

export function loopOf(one: Case, port: number, seconds: number): LoopOptions {
  const { requests, status, connections, first, isNewEach, by, from } = one;
  return {
    target: {
      port,
      ...(from !== undefined && { localAddress: from }),
      ...(by === "https" && { servername: host }),
    },
    requests,
    status,
    connections,
    seconds,
    ...(first !== undefined && { first }),
    ...(isNewEach !== undefined && { isNewEach }),
  };
}
