// Facts of any shape as HTML: sizes, durations and moments in people's units, the exact value in a title. What a fact is in is told by the end of its name, as
// everywhere in this code (`_bytes`, `_ms`, `_s`); a moment is told by its form. The names are those of `status --json`.

import { escapeHtml } from "../../core/html-text.ts";
import { distanceText, durationText, sizeText, wholeNumber } from "../../core/quantities.ts";

/** Escapes text from anywhere. What turns the direction of reading is left out. */
export function plainHtml(text: string): string {
  return escapeHtml(text.replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, ""));
}

const momentForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** Writes how long ago a moment was. What is none stands there as it is. */
export function momentHtml(iso: string, nowMs: number): string {
  if (!momentForm.test(iso)) return plainHtml(iso);
  return `<time datetime="${iso}" title="${iso}">${distanceText(Date.parse(iso), nowMs)}</time>`;
}

/** Numbers that name something, and are no count of anything. */
const namingNumber = /(?:^|_)(?:port|version|seq|no|id)$|Port$/;
const sizeName = /(?:^|_)bytes$|^disk_max$/;
const durationName = /_m?s$/;

function numberHtml(name: string, value: number): string {
  const titled = (exact: string, text: string): string => `<span title="${exact}">${text}</span>`;
  if (sizeName.test(name)) return titled(`${value} bytes`, sizeText(value));
  if (name.endsWith("_ms")) return titled(`${value} ms`, durationText(value / 1_000));
  if (name.endsWith("_s")) return titled(`${value} s`, durationText(value));
  return namingNumber.test(name) || !Number.isInteger(value) ? String(value) : wholeNumber(value);
}

function valueHtml(name: string, value: unknown, nowMs: number): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return numberHtml(name, value);
  if (typeof value === "string") return momentHtml(value, nowMs);
  return plainHtml(JSON.stringify(value) ?? "–");
}

/** A value that says its unit needs none in its name. */
function nameHtml(name: string, value: unknown): string {
  const bare =
    typeof value === "number" &&
    name !== "bytes" &&
    (sizeName.test(name) || durationName.test(name))
      ? name.replace(/_(?:bytes|m?s)$/, "")
      : name;
  return plainHtml(bare.replaceAll("_", " "));
}

type Named = readonly [name: string, value: unknown];

const isGroup = (value: unknown): value is object => typeof value === "object" && value !== null;
const isFlat = (value: unknown): value is object =>
  isGroup(value) && !Array.isArray(value) && !Object.values(value).some(isGroup);

/** Writes the facts of one part as a table: rows of names and values, or columns where they are a list of alike things. */
export function factsHtml(facts: unknown, nowMs: number, label: string): string {
  if (!isGroup(facts)) return `<p>${valueHtml("", facts, nowMs)}</p>`;
  if (Object.keys(facts).length === 0) return "<p>None.</p>";
  if (Array.isArray(facts) && facts.every(isFlat)) return listHtml(facts, nowMs, label);
  const rows = rowsOf(facts, "", nowMs).map(
    ([name, html]) => `<tr><th scope="row">${name}</th><td>${html}</td></tr>`,
  );
  return `<table class="facts">${rows.join("")}</table>`;
}

type Row = readonly [nameHtml: string, valueHtml: string];

function rowsOf(group: object, before: string, nowMs: number): readonly Row[] {
  return Object.entries(group).flatMap(([name, value]: Named): readonly Row[] => {
    const path = `${before}${nameHtml(name, value)}`;
    if (!isGroup(value)) return [[path, valueHtml(name, value, nowMs)]];
    if (Object.keys(value).length === 0) return [[path, "none"]];
    if (Array.isArray(value) && !value.some(isGroup))
      return [[path, value.map((one) => valueHtml(name, one, nowMs)).join(", ")]];
    return rowsOf(value, `${path}, `, nowMs);
  });
}

function listHtml(rows: readonly object[], nowMs: number, label: string): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const first = new Map(rows.flatMap((row) => Object.entries(row)).toReversed());
  const head = names.map((name) => nameHtml(name, first.get(name)));
  const cells = rows.map((row) => {
    const values = new Map<string, unknown>(Object.entries(row));
    return names.map((name) => valueHtml(name, values.get(name), nowMs));
  });
  return wideTable(label, head, cells);
}

/** Writes a table that may be wider than the page; it is scrolled for itself. All is HTML but the label. */
export function wideTable(
  label: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const names = head.map((name) => `<th scope="col">${name}</th>`).join("");
  const lines = rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join("")}</tr>`);
  return `<div class="wide" role="region" tabindex="0" aria-label="${plainHtml(label)}"><table><thead><tr>${names}</tr></thead><tbody>${lines.join("")}</tbody></table></div>`;
}
