// The words in which both programs tell their status to a person: durations, sizes, counts, warnings.

import { plain } from "./text.ts";

export type Facts = Readonly<Record<string, unknown>>;

export type StatusView = { readonly now: Date; readonly colour: boolean };

/** `started`: when the program started. */
export function warningsText(
  warnings: unknown,
  started: unknown,
  { now, colour }: StatusView,
): string {
  const list = Array.isArray(warnings) ? warnings.map(factsOf) : [];
  if (list.length === 0) return "warnings: none\n";
  const order = ["error", "warning", "info"];
  const sorted = list.toSorted(
    (one, other) => order.indexOf(said(one["severity"])) - order.indexOf(said(other["severity"])),
  );
  const colours: Readonly<Record<string, number>> = { error: 31, warning: 33, info: 36 };
  const lines = sorted.map(({ code, severity, text, since, hint }) => {
    const name = painted(said(code), colours[said(severity)] ?? 33, colour);
    return `  ${name} (${said(severity)}) ${sinceText(since, started, now)}: ${said(text)}\n    ${said(hint)}\n`;
  });
  return `warnings:\n${lines.join("")}`;
}

/** Writes the lines of a part behind its name. */
export function partLines(name: string, lines: readonly string[]): string {
  return lines.map((line, at) => `${(at === 0 ? name : "").padEnd(10)} ${line}\n`).join("");
}

export function factsOf(value: unknown): Facts {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Facts)
    : {};
}

export function said(value: unknown): string {
  if (value === null || value === undefined || value === "") return "–";
  return plain(typeof value === "string" ? value : JSON.stringify(value));
}

export function painted(text: string, colour: number, isColoured: boolean): string {
  return isColoured ? `\u001B[${colour}m${text}\u001B[0m` : text;
}

export function count(value: unknown): string {
  return typeof value === "number" ? value.toLocaleString("en") : said(value);
}

export function counted(value: unknown, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function sizeOf(value: unknown): string {
  if (typeof value !== "number") return said(value);
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(value) / 10));
  const size = value / 2 ** (10 * power);
  return `${power === 0 ? size : size.toFixed(1)} ${units[power]}`;
}

export function ageOf(value: unknown, now: Date): string {
  const at = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? said(value) : durationOf((now.getTime() - at) / 1_000);
}

/** Writes seconds as a person says them, with two units at most. */
export function durationOf(seconds: unknown): string {
  if (typeof seconds !== "number" || !Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  const [days, hours, minutes] = [86_400, 3_600, 60].map((unit) => Math.floor(whole / unit));
  if ((days ?? 0) > 0) return `${days} d ${(hours ?? 0) % 24} h`;
  if ((hours ?? 0) > 0) return `${hours} h ${(minutes ?? 0) % 60} min`;
  if ((minutes ?? 0) > 0) return `${minutes} min ${whole % 60} s`;
  return `${whole} s`;
}

/** What was found within this time after a start was so before it, or may have been. */
const foundAtStartMs = 10_000;

/**
 * Writes since when something is so. A process does not know what was before it, so its age is no age of what it found when
 * it started.
 */
export function sinceText(since: unknown, started: unknown, now: Date): string {
  const afterMs = Date.parse(said(since)) - Date.parse(said(started));
  return afterMs < foundAtStartMs
    ? `since the start ${ageOf(started, now)} ago or longer`
    : `for ${ageOf(since, now)}`;
}
