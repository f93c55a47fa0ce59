// Stored responses by chance: of every status, age, length and coding that is stored, and with the fields that change an answer.

import {
  normalAcceptEncoding,
  selectingValue,
  toldCookiesName,
} from "../../../../src/core/http/http-vary.ts";
import { mimeOf } from "../../../../src/core/http/content-coding.ts";
import type { EntryMeta, VariantForm } from "../../../../src/agent/cache/entry.ts";
import { codings, cookies, devices, languages, paths, portSign, type Paths } from "./requests.ts";
import type { Dice } from "./scenes.ts";

/** A response to be stored: what a side needs beside its own numbers. */
export type StoredOf = {
  readonly host: string;
  readonly path: string;
  readonly query: string;
  readonly meta: Omit<EntryMeta, "sourceNo">;
  readonly body: Buffer;
  /** Forms that are there beside it. */
  readonly variants: readonly VariantForm[];
};

type Line = readonly [name: string, value: string];

const sizes = [0, 1, 5, 300, 2_000, 2_000, 5_000, 16_384, 16_385, 40_000] as const;

const pictureSizes = [2_047, 2_048, 5_000, 5_000, 40_000] as const;

/** Bytes of every value, so that none is taken for text. */
const bytes = Buffer.from(Array.from({ length: 50_000 }, (_, at) => (at * 7 + (at >> 8)) & 255));

function bodyOf(dice: Dice, from: typeof sizes | typeof pictureSizes): Buffer {
  const [size, start] = [dice.one<number>([...from]), dice.below(1_000)];
  return bytes.subarray(start, start + size);
}

function headersOf(
  dice: Dice,
  status: number,
  nowMs: number,
  freshForS: number,
  isPicture: boolean,
): readonly Line[] {
  const said: Line[] = [];
  const maybe = (share: number, name: string, ...values: readonly [string, ...string[]]): void => {
    if (dice.happens(share)) said.push([name, dice.one(values)]);
  };
  maybe(0.85, "Date", new Date(nowMs - 1_000 * dice.below(100)).toUTCString(), "not a date");
  if (isPicture) maybe(0.95, "Content-Type", "image/jpeg", "image/png", "image/webp", "image/avif");
  else maybe(0.9, "Content-Type", "text/html; charset=utf-8", "text/css", "image/png", "application/json", "image/jpeg", "image/webp", "image/avif"); // prettier-ignore
  const age = `max-age=${freshForS}`;
  maybe(0.97, "Cache-Control", age, age, age, `public, ${age}`, `public, ${age}`, `${age}, must-revalidate`, `${age}, no-transform`, `s-maxage=${freshForS}`); // prettier-ignore
  maybe(0.02, "Cache-Control", "no-cache", "private");
  maybe(0.7, "ETag", '"v1"', 'W/"v1"', '"v2"', '"v1-gzip"');
  maybe(0.5, "Last-Modified", "Mon, 01 Jan 2029 00:00:00 GMT", "nonsense");
  maybe(0.04, "Vary", "Accept", "Accept-Language");
  maybe(0.1, "Content-MD5", "x");
  maybe(0.1, "Strict-Transport-Security", "max-age=1; preload");
  maybe(0.1, "X-Powered-By", "PHP/5");
  maybe(0.1, "Set-Cookie", "a=b; Path=/");
  maybe(0.05, "Content-Encoding", "gzip");
  maybe(0.05, "Accept-Ranges", "bytes");
  maybe(0.05, "X-Latin", "caf\u00e9");
  if (status === 301) said.push(["Location", "/elsewhere"]);
  return said;
}

/** What a response varies by, with values that some of the requests have. */
function varyOf(dice: Dice, scheme: string): Record<string, string> | null {
  if (dice.happens(0.4)) return null;
  const vary: Record<string, string> = {};
  if (dice.happens(0.8))
    vary["x-forwarded-proto"] = dice.one([scheme, scheme, scheme, scheme, "http", "https", `http:${portSign}`, `https:${portSign}`]); // prettier-ignore
  const by = (share: number, name: string, values: readonly [string, ...string[]]): void => {
    if (dice.happens(share)) vary[name] = selectingValue(name, dice.one(values));
  };
  by(0.15, "accept-language", [...languages, ""]);
  by(0.12, "x-device", [...devices, ""]);
  by(0.02, "cookie", [...cookies, ""]);
  by(0.35, toldCookiesName, ["", "", "", "lang=de", "lang=fr"]);
  by(0.02, "user-agent", ["curl/8.5.0", ""]);
  by(0.005, "via", [""]);
  by(0.005, "x_under", [""]);
  by(0.005, "if-none-match", ["", '"v1"']);
  if (dice.happens(0.1)) vary["accept-encoding"] = normalAcceptEncoding(dice.one(codings));
  return vary;
}

type Variants = readonly VariantForm[];
const codedVariants: readonly [Variants, ...Variants[]] = [
  ["br"],
  ["gzip"],
  ["br", "gzip"],
  ["zstd", "br"],
];
const imageVariants: readonly [Variants, ...Variants[]] = [
  ["avif"],
  ["webp"],
  ["avif", "webp"],
  ["webp", "avif-640", "same-640"],
  ["webp-640", "same-320"],
];

const statuses = [200, 200, 200, 200, 200, 200, 200, 204, 301, 404, 404, 410, 203, 500] as const;

/** `scheme`: that of most visitors. `hot`: the paths of most requests. */
export function storedOf(dice: Dice, nowMs: number, scheme: string, hot: Paths): StoredOf {
  const path = dice.happens(0.9) ? dice.one(hot) : dice.one(paths);
  const isPicture = /\.(?:png|jpg)$/i.test(path);
  const status = isPicture && dice.happens(0.8) ? 200 : dice.one(statuses);
  const freshForS = dice.happens(0.7) ? 86_400 : dice.one([60, 60, 600, 3_600, 1, 2, 10, 0]);
  const headers = headersOf(dice, status, nowMs, freshForS, isPicture);
  const mime = mimeOf(headers.find(([name]) => name === "Content-Type")?.[1]);
  const initialAgeS = dice.one([0, 0, 0, 0, 1, 9, 59]);
  // Stored just now, long ago, or so that it ends within moments; and in the future, after a clock was set back.
  const agoMs = dice.happens(0.9) ? dice.one([0, 1, 500, 999, 1_000, 1_001, 2_000, 30_000]) : dice.one([100_000, (freshForS - initialAgeS) * 1_000 - dice.below(3) * 500, -5_000]); // prettier-ignore
  const hasVariants = status === 200 && dice.happens(isPicture ? 0.9 : 0.4);
  return {
    host: dice.one(["www.example.com", "www.example.com", "www.example.com", "shop.example.com"]),
    path,
    query: dice.one(["", "", "", "", "", "", "x=1", "id=1", "utm_source=z"]),
    meta: {
      status,
      headers,
      mime,
      vary: varyOf(dice, scheme),
      storedAtMs: Math.floor(nowMs - agoMs),
      initialAgeS,
      freshForS,
      digest: null,
    },
    body: status === 204 ? Buffer.alloc(0) : bodyOf(dice, isPicture ? pictureSizes : sizes),
    variants: hasVariants
      ? dice.one(mime.startsWith("image/") ? imageVariants : codedVariants)
      : [],
  };
}
