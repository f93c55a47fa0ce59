// The words in which both programs tell their status to a person: durations, sizes, counts, warnings.

import { beginningText } from "../base/health.ts";
import { plain } from "./text.ts";

export type Facts = Readonly<Record<string, unknown>>;

export type StatusView = { readonly now: Date; readonly colour: boolean };

export function warningsText(warnings: unknown, { now, colour }: StatusView): string {
  const list = Array.isArray(warnings) ? warnings.map(factsOf) : [];
  if (list.length === 0) return "warnings: none\n";
  const order = ["error", "warning", "info"];
  const sorted = list.toSorted(
    (one, other) => order.indexOf(said(one["severity"])) - order.indexOf(said(other["severity"])),
  );
  const colours: Readonly<Record<string, number>> = { error: 31, warning: 33, info: 36 };
  const lines = sorted.map(({ code, severity, text, since, hint, not_before: notBefore }) => {
    const name = painted(said(code), colours[said(severity)] ?? 33, colour);
    return `  ${name} (${said(severity)}) ${sinceText(since, notBefore, now)}: ${said(text)}\n    ${said(hint)}\n`;
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

/**
 * Writes since when something is so, and how sure that is. `notBefore`: when it was known last not to be so; null where nobody looked before; undefined where
 * that is not told, as by an earlier release.
 */
export function sinceText(since: unknown, notBefore: unknown, now: Date): string {
  const found = `since ${clockOf(since)}${agoText(since, now)}`;
  if (typeof notBefore !== "string" && notBefore !== null) return found;
  return `${found}${beginningText({ since: said(since), notBefore }, durationOf)}`;
}

function agoText(at: unknown, now: Date): string {
  return Number.isNaN(Date.parse(said(at))) ? "" : ` (${ageOf(at, now)} ago)`;
}

/** Writes a time to the second, in UTC as in the log. */
export function clockOf(at: unknown): string {
  return said(at).replace(/\.\d+Z$/, "Z");
}
