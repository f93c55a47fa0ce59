// The line of a request that was answered in one step, written without making a record first: its parts that are the same for many requests are made once, by
// whoever keeps them. It says what JSON.stringify would write of the record, in another order.

import { recordText } from "../../../core/record-text.ts";
import type { ToldVerdict } from "../../../core/limits/limit-verdict.ts";
import type { RequestRecord } from "../../../wire/request-log.ts";

// The limits of wire/request-log.ts, in UTF-16 units.
export const uriCharsMax = 8_192;
export const authorityCharsMax = 512;
export const userAgentCharsMax = 1_024;
export const methodCharsMax = 64;
const botCharsMax = 255;

/** What differs from one request to the next. Times are in ms. */
export type LineFacts = {
  readonly connection: number;
  readonly status: number;
  readonly method: "GET" | "HEAD";
  readonly whenMs: number;
  readonly durationMs: number;
  readonly bytesSent: number;
  readonly cache: RequestRecord["cache"];
};

/** Returns the line, without its end, of these facts and of the parts below. */
export function recordLine(facts: LineFacts, target: string, visitor: string): string {
  const { connection, status, method, whenMs, durationMs, bytesSent, cache } = facts;
  return `{"connection":${connection},"response_status":${status},"request_method":"${method}","backend_time":0,"when":${secondsText(whenMs)},"bytes_sent":${bytesSent},"duration":${secondsText(durationMs)},"cache":"${cache}"${target}${visitor}`;
}

/** The part of what was asked for. Texts are as sent. */
export function targetPart(url: string, authority: string, domain: string | null): string {
  const uri = json(recordText(url, uriCharsMax));
  const asked = json(recordText(authority, authorityCharsMax));
  return `,"uri_path":${uri},"authority":${asked},"domain":${json(domain)}`;
}

/** The part of who asked, and the end of the line. */
export function visitorPart(
  clientIp: string,
  userAgent: string | undefined,
  verdict: ToldVerdict | undefined,
): string {
  const said = json(verdictText(verdict));
  const [bot, agent] = [json(botText(verdict)), json(userAgentText(userAgent))];
  return `,"client_ip":${json(clientIp)},"verdict":${said},"bot":${bot},"user_agent":${agent}}`;
}

/** Microseconds behind the point. */
export function seconds(ms: number): number {
  return micros(ms) / 1_000_000;
}

/** `allow not-a-bot`, `block bad-set`, `limit request-rate`; "none" for what was answered before the verdict. */
export function verdictText(verdict: ToldVerdict | undefined): string {
  return verdict === undefined ? "none" : `${verdict.kind} ${verdict.reason}`;
}

export function botText(verdict: ToldVerdict | undefined): string | null {
  const bot = verdict?.bot ?? null;
  return bot === null ? null : recordText(bot, botCharsMax);
}

export function userAgentText(userAgent: string | undefined): string | null {
  return userAgent === undefined ? null : recordText(userAgent, userAgentCharsMax);
}

function json(value: string | null): string {
  return JSON.stringify(value);
}

function micros(ms: number): number {
  return Math.max(0, Math.round(ms * 1_000));
}

/** `seconds` as text: six digits behind the point are the same number, and are written without looking for the shortest. */
function secondsText(ms: number): string {
  const all = micros(ms);
  const whole = Math.floor(all / 1_000_000);
  return `${whole}.${String(all - whole * 1_000_000).padStart(6, "0")}`;
}
