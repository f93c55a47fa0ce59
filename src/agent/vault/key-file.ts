// The symmetric keys of this deployment site on this host: `vault/keys.json`, mode 0600, replaced whole.
//
//   {"format": 1, "keys": [{"name", "version", "sealed", "is_current", "key"}]}, the newest last
//
//   version, sealed   as central sent them
//   is_current        false if central took the key away while certificates on this host are still sealed
//                     with it
//   key               64 hex characters; null if it is sealed under another secret16 than this host's; tried
//                     again at each start
//
// The keys are stored opened: a changed secret16 must not take HTTPS from a host that cannot reach central
// just then, and whoever can read this file can read the secret's file as well.

import { readFile, rename } from "node:fs/promises";
import { parseJson } from "../../core/journal/json-text.ts";
import { writeDurable } from "../../base/durable-file.ts";
import { openSymmetricKey, type SiteCredentials } from "../../base/vault-seal.ts";
import { codeOf, systemCode } from "../../core/faults.ts";
import type { SymmetricKeyState } from "../../wire/vault.ts";

export type KeptKey = SymmetricKeyState & {
  readonly isCurrent: boolean;
  /** The open key; undefined if it does not open with the secret16 of this host. */
  readonly key: Uint8Array | undefined;
};

/**
 * Reads the keys. There are none if the file is absent or damaged; a damaged one is set aside as
 * `<path>.corrupt`.
 */
export async function readKeys(path: string): Promise<readonly KeptKey[]> {
  let raw: unknown;
  try {
    raw = parseJson(await readFile(path, "utf8"));
  } catch (error) {
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  }
  const keys = parseFile(raw);
  if (keys === undefined) await rename(path, `${path}.corrupt`);
  return keys ?? [];
}

/** Parses the file; undefined if it is not what writeKeys wrote. */
function parseFile(raw: unknown): readonly KeptKey[] | undefined {
  if (!isObject(raw) || raw["format"] !== 1 || !Array.isArray(raw["keys"])) return undefined;
  const keys = raw["keys"].map(parseKey);
  return keys.every((one) => one !== undefined) ? keys : undefined;
}

function parseKey(raw: unknown): KeptKey | undefined {
  if (!isObject(raw)) return undefined;
  const { name, version, sealed, is_current: isCurrent, key } = raw;
  if (typeof name !== "string" || typeof version !== "number" || typeof sealed !== "string")
    return undefined;
  if (typeof isCurrent !== "boolean") return undefined;
  if (key === null) return { name, version, sealed, isCurrent, key: undefined };
  if (typeof key !== "string" || !/^[0-9a-f]{64}$/.test(key)) return undefined;
  return { name, version, sealed, isCurrent, key: new Uint8Array(Buffer.from(key, "hex")) };
}

function isObject(raw: unknown): raw is Readonly<Record<string, unknown>> {
  return typeof raw === "object" && raw !== null;
}

export async function writeKeys(path: string, keys: readonly KeptKey[]): Promise<void> {
  const rows = keys.map(({ isCurrent, key, ...state }) => ({
    ...state,
    is_current: isCurrent,
    key: key === undefined ? null : Buffer.from(key).toString("hex"),
  }));
  await writeDurable(path, JSON.stringify({ format: 1, keys: rows }));
}

/** Tries to open the keys that did not open before. */
export function openKeys(keys: readonly KeptKey[], site: SiteCredentials): readonly KeptKey[] {
  return keys.map((one) => (one.key === undefined ? { ...one, key: opened(one, site) } : one));
}

/**
 * Puts central's keys in place of those before. A name always stands for the same key: one that was opened
 * before stays opened, however it is sealed now. Keys in use stay even if central has taken them away.
 */
export function takeKeys(
  before: readonly KeptKey[],
  states: readonly SymmetricKeyState[],
  inUse: ReadonlySet<string>,
  site: SiteCredentials,
): readonly KeptKey[] {
  const known = new Map(before.map((one) => [one.name, one]));
  const current = states.map((state): KeptKey => {
    const key = known.get(state.name)?.key ?? opened(state, site);
    return { ...state, isCurrent: true, key };
  });
  const names = new Set(states.map(({ name }) => name));
  const others = before.filter(({ name }) => !names.has(name) && inUse.has(name));
  return [...others.map((one) => ({ ...one, isCurrent: false })), ...current];
}

/** Opens a key; undefined if it is sealed under another secret. */
function opened(
  { name, sealed }: SymmetricKeyState,
  site: SiteCredentials,
): Uint8Array | undefined {
  try {
    return openSymmetricKey(sealed, site, name);
  } catch (error) {
    if (codeOf(error) === "SEAL_BROKEN") return undefined;
    throw error;
  }
}
