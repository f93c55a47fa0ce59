// The head of an answer of HTTP/1.1 as text, in the order in which node:http writes it: the fields, the date, what the connection says of itself, how the
// body ends.

import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "node:http";

/** The time that a connection may be idle after an answer; visitors are told it. */
export const keepAliveMs = 60_000;

/** What an answer says of its connection: that it stays open, or that this is its last answer. */
export const staysOpen = `Connection: keep-alive\r\nKeep-Alive: timeout=${keepAliveMs / 1_000}\r\n`;
export const isLastAnswer = "Connection: close\r\n";

/** Returns status line and fields, each with its line end. `fields` are names and values in turn. Throws for what HTTP cannot carry. */
export function headText(status: number, fields: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n`;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = "", value = ""] = [fields[at], fields[at + 1]];
    validateHeaderName(name);
    validateHeaderValue(name, value);
    text += `${name}: ${value}\r\n`;
  }
  return text;
}

/** Returns whether the fields have one of this name, which is in lower case. */
export function hasField(fields: readonly string[], name: string): boolean {
  for (let at = 0; at < fields.length; at += 2)
    if (fields[at]?.length === name.length && fields[at]?.toLowerCase() === name) return true;
  return false;
}

let dateText = "";
let dateSecond = Number.NaN;

/** Returns the Date field of this moment, with its line end. */
export function dateLine(nowMs: number): string {
  const second = Math.floor(nowMs / 1_000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = `Date: ${new Date(second * 1_000).toUTCString()}\r\n`;
  }
  return dateText;
}
