// The call by which plugins clear Cloudflare's cache, `POST /client/v4/zones/{zone}/purge_cache`, and answers of
// that form. Source: Cloudflare's API reference, "Purge Cached Content", of 2025. The zone is not looked at: the
// key says which domains are meant.

import { clearItemsMax } from "../patterns/clear-items.ts";
import type { PurgeItems } from "./purge-items.ts";
import type { PurgeRead } from "./purge-dialects.ts";

const cloudflarePath = /^\/client\/v4\/zones\/[A-Za-z0-9._-]{1,255}\/purge_cache$/;

/** The most bytes of a body: 1,000 URLs of 1 KiB. */
export const cloudflareBodyBytesMax = 2 ** 20;

export function isCloudflarePurge(method: string, url: string): boolean {
  return method === "POST" && cloudflarePath.test(url);
}

const lists = ["files", "tags", "hosts", "prefixes"] as const;

/** Reads the body of the call: exactly one of its members says what to clear. */
export function readCloudflarePurge(body: string): PurgeRead {
  let said: unknown;
  try {
    said = JSON.parse(body);
  } catch {
    return refused("the body is not JSON");
  }
  if (typeof said !== "object" || said === null || Array.isArray(said)) return refused(oneOf);
  const members: Readonly<Record<string, unknown>> = { ...said };
  const named = [...lists, "purge_everything"].filter((name) => members[name] !== undefined);
  if (named.length !== 1) return refused(oneOf);
  if (members["purge_everything"] !== undefined)
    return members["purge_everything"] === true
      ? read({ everything: true })
      : refused("purge_everything must be true");
  for (const list of lists) {
    const value = members[list];
    if (value !== undefined) return readList(list, value);
  }
  return refused(oneOf);
}

const oneOf =
  'the body must have one of "purge_everything", "files", "tags", "hosts" or "prefixes"';

function readList(list: (typeof lists)[number], value: unknown): PurgeRead {
  const texts = Array.isArray(value) ? value.map((one) => textOf(list, one)) : [];
  if (texts.length === 0 || !texts.every((text) => text !== undefined))
    return refused(`"${list}" must be a list of texts that is not empty`);
  if (texts.length > clearItemsMax)
    return refused(`"${list}" has ${texts.length} members, at most ${clearItemsMax} are allowed`);
  const all = [...new Set(texts)];
  switch (list) {
    case "files":
      return read({ urls: all });
    case "prefixes":
      return read({ prefixes: all.map(prefixItem) });
    case "tags":
      return read({ tags: all });
    case "hosts":
      return read({ hosts: all });
    default:
      return list satisfies never;
  }
}

/** A file may be an object with a URL; header fields of a cache key have no counterpart, every variant goes. */
function textOf(list: string, value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const isFile = list === "files" && typeof value === "object" && value !== null && "url" in value;
  return isFile && typeof value.url === "string" ? value.url : undefined;
}

/** Prefixes come without a scheme: `www.example.com/foo`. */
function prefixItem(text: string): string {
  const isBare = !text.startsWith("/") && !text.includes("://");
  return isBare ? `https://${text}` : text;
}

function read(items: PurgeItems): PurgeRead {
  return { kind: "items", dialect: "cloudflare", items };
}

function refused(message: string): PurgeRead {
  return { kind: "refused", message };
}

/** Cloudflare's codes for what can go wrong here; clients show the message. */
const codes: Readonly<Record<number, number>> = { 400: 1012, 403: 10000, 503: 10001 };

/** Returns the answer's body. `id` is what the call has made, null where it has failed. */
export function cloudflareAnswer(status: number, message: string, id: string | null): string {
  const isDone = status < 300;
  const errors = isDone ? [] : [{ code: codes[status] ?? 10001, message }];
  const result = id === null ? null : { id };
  return `${JSON.stringify({ success: isDone, errors, messages: [], result })}\n`;
}
