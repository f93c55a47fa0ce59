// An answer that is written in the step in which it is found, and how its head is made and kept.

import type { RequestRecord } from "../../../wire/request-log.ts";
import type { HeldEntries } from "../../cache/worker/hot-lookups.ts";
import type { ResponseCache } from "../cached/cache-port.ts";
import type { HeadKind, HotHead, HotRoute } from "../cached/hot-table.ts";
import { Http2Head } from "../doors/http2-head.ts";
import { dateLine, hasField, headText, staysOpen } from "../doors/head-text.ts";
import type { QuickRequest } from "./quick-request.ts";

/** An answer to be written in this step, and what is known of its request for the record. */
export type QuickAnswer = {
  readonly kind: "answer";
  readonly asked: QuickRequest;
  readonly status: number;
  readonly cache: RequestRecord["cache"];
  /** Complete but for what its connection says. */
  readonly head: string;
  /** A string has one character a byte. */
  readonly body: string | Uint8Array;
  /** Head and body for a connection that stays open, where they are at hand as one. */
  readonly whole: string | undefined;
  readonly http2: Http2Head;
};

/** Larger bodies are written as bytes, behind their heads. */
const wholeBodyMax = 16_384;

export const noBytes = new Uint8Array();

/** Makes an answer of a head's fields, which are names and values in turn. Without a date it has that of this moment. */
export function makeHead(
  kind: HeadKind & Pick<HotHead, "ageS">,
  flat: readonly string[],
  body: string | Uint8Array,
  nowMs: number,
): HotHead {
  const said = headText(kind.status, flat);
  const text = hasField(flat, "date") ? said : `${said}${dateLine(nowMs)}`;
  return { ...kind, text, ...wholeOf(text, body), http2: new Http2Head(kind.status, flat) };
}

/** Returns a small body as a text, and the answer as one. */
function wholeOf(text: string, body: string | Uint8Array): Pick<HotHead, "whole" | "body"> {
  if (typeof body === "string" || body.length > wholeBodyMax)
    return { whole: undefined, body: undefined };
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  const before = `${text}${staysOpen}\r\n`;
  const whole = before + bytes.toString("latin1");
  // A part of the whole takes no memory of its own.
  return { whole, body: whole.slice(before.length) };
}

/** Returns what memory holds of a route's key now. */
export function heldOf(cache: ResponseCache, route: HotRoute): HeldEntries | undefined {
  const { held } = route;
  if (held !== undefined && cache.isCurrent(held)) return held;
  return (route.held = cache.findHeld(route.key));
}
