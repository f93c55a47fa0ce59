// The keys of session tickets on this host: `vault/tickets.json`, mode 0600 in a directory of mode 0700, replaced whole. With them visitors resume their sessions
// behind a restart.
//
//   {"format": 1, "made_ms": 1700000000000, "current": "96 hex characters", "previous": the same or null}
//
// They lie beside the keys that open the certificates' private keys, and whoever reads these can do more. A file that is damaged is as good as none.

import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { ensureDirectory, writeDurable } from "../../../base/durable-file.ts";
import { parseJson } from "../../../core/journal/json-text.ts";
import type { KeptTicketKeys } from "../doors/ticket-keys.ts";

export async function readTicketKeys(path: string): Promise<KeptTicketKeys | undefined> {
  const text = await readFile(path, "utf8").catch(() => undefined);
  const raw = text === undefined ? undefined : parseJson(text);
  if (typeof raw !== "object" || raw === null) return undefined;
  const { format, made_ms: madeMs, current: named, previous: before } = raw as RawKeys;
  const [current, previous] = [keyOf(named), keyOf(before)];
  if (format !== 1 || typeof madeMs !== "number" || current === undefined) return undefined;
  return { madeMs, current, previous };
}

/** It is durable when this resolves. */
export async function writeTicketKeys(
  path: string,
  { madeMs, current, previous }: KeptTicketKeys,
): Promise<void> {
  const said = {
    format: 1,
    made_ms: madeMs,
    current: hexOf(current),
    previous: previous === undefined ? null : hexOf(previous),
  };
  await ensureDirectory(dirname(path)); // On a host's first start nothing is there yet.
  await writeDurable(path, `${JSON.stringify(said)}\n`);
}

type RawKeys = Readonly<Record<"format" | "made_ms" | "current" | "previous", unknown>>;

function keyOf(raw: unknown): Uint8Array | undefined {
  return typeof raw === "string" && /^[0-9a-f]{96}$/.test(raw)
    ? Buffer.from(raw, "hex")
    : undefined;
}

const hexOf = (key: Uint8Array): string => Buffer.from(key).toString("hex");
