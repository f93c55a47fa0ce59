// A request record as one line for a person: when, how it ended, what was asked, by whom.

import { count } from "./status-words.ts";

type Record = Readonly<{ [member: string]: unknown }>;

/** `record` is as the agent shows it; what is missing prints as nothing. */
export function renderRecord(record: Record, colour: boolean): string {
  const status = Number(record["response_status"] ?? 0);
  const shown = String(status).padStart(3, "0");
  const parts = [
    timeOf(record["when"]),
    colour ? paint(shown, status) : shown,
    text(record["cache"]).padEnd(7),
    `${Math.round(Number(record["duration"] ?? 0) * 1_000)} ms`.padStart(8),
    sizeOf(Number(record["bytes_sent"] ?? 0)).padStart(9),
    text(record["request_method"]),
    `${text(record["authority"])}${text(record["uri_path"])}`,
    text(record["client_ip"]),
    ...verdictOf(record),
    JSON.stringify(text(record["user_agent"] ?? "–")),
  ];
  return `${parts.join(" ")}\n`;
}

/** Keeps a stranger's text from steering the terminal. */
function text(raw: unknown): string {
  return (typeof raw === "string" ? raw : "").replaceAll(/\p{C}/gu, "?");
}

function timeOf(raw: unknown): string {
  const at = new Date(Number(raw) * 1_000);
  return Number.isNaN(at.getTime()) ? "–" : at.toISOString();
}

function sizeOf(bytes: number): string {
  if (bytes < 2 ** 10) return `${bytes} B`;
  if (bytes < 2 ** 20) return `${(bytes / 2 ** 10).toFixed(1)} KiB`;
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function verdictOf({ verdict, bot }: Record): readonly string[] {
  const said = verdict === "allow" ? "" : text(verdict);
  return bot === null || bot === undefined ? [said].filter(Boolean) : [`${said}[${text(bot)}]`];
}

function paint(shown: string, status: number): string {
  const code = status >= 500 ? 31 : status >= 400 ? 33 : status >= 300 ? 36 : 32;
  return `\u001B[${code}m${shown}\u001B[0m`;
}

/** What stands beside the balance. Agents of older releases do not state it. */
export type Unproven = { readonly unproven?: unknown; readonly unknown?: unknown };

/** Returns the same facts for a person: what is an upper bound says so, and nothing is said of nothing. */
export function unprovenText({ unproven = 0, unknown = 0, ...rest }: Unproven): {
  readonly unproven?: string;
  readonly unknown?: string;
} {
  return {
    ...rest,
    ...(unproven === 0 ? {} : { unproven: `at most ${count(unproven)} more lost` }),
    ...(unknown === 0
      ? {}
      : {
          unknown: `${count(unknown)} more that central has as records or as gaps: the disk took nothing when they came, so this host cannot tell`,
        }),
  };
}
