// Collects what somebody needs who is to find out what is wrong with a host: one archive, and no secret in it.
//
// Each piece is a file. A piece that cannot be had is a line of `missing.txt`. Every text goes through `Redaction` before it is written.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../core/faults.ts";
import { parseJson } from "../../core/journal/json-text.ts";

/** The name of a file in the archive, and how its text is had. */
export type Piece = {
  readonly name: string;
  readonly read: () => Promise<string | undefined> | string | undefined;
};

export type CollectedText = { readonly name: string; readonly text: string };

/** Reads all pieces. Never rejects. */
export async function collect(
  pieces: readonly Piece[],
  redact: (text: string) => string,
): Promise<readonly CollectedText[]> {
  const collected: CollectedText[] = [];
  const missing: string[] = [];
  for (const { name, read } of pieces) {
    try {
      const text = await read();
      if (text === undefined) missing.push(`${name}: there is none`);
      else collected.push({ name, text: redact(text) });
    } catch (error) {
      missing.push(`${name}: ${redact(messageOf(error))}`);
    }
  }
  return missing.length === 0
    ? collected
    : [...collected, { name: "missing.txt", text: `${missing.join("\n")}\n` }];
}

/**
 * Makes texts fit to be sent to somebody: the secrets of this host by their value, and whatever looks like a credential by its
 * form.
 */
export function redaction(secrets: readonly string[]): (text: string) => string {
  // The longest first: one may be part of another.
  const known = secrets.filter(({ length }) => length >= 8).toSorted((a, b) => b.length - a.length);
  return (text) => {
    let clean = text;
    for (const secret of known) clean = clean.replaceAll(secret, "[secret]");
    return (
      clean
        .replaceAll(
          /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g,
          "[secret]",
        )
        .replaceAll(/\benrol1_[0-9a-f]+/gi, "enrol1_[secret]")
        .replaceAll(/(:\/\/)[^/\s@"']+:[^/\s@"']+@/g, "$1[secret]@")
        // Variables of a unit, comments, settings of others. A path is no secret.
        .replaceAll(
          /([\w-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key)[\w-]*"?\s*[:=]\s*)(?!\/)("[^"]*"|[^\s,}"']+)/gi,
          "$1[secret]",
        )
        .replaceAll(/\b(Bearer|Basic|Token)\s+[\w+/=.~-]{8,}/gi, "$1 [secret]")
        .replaceAll(
          /("?(?:set-cookie|cookie|authorization|proxy-authorization|x-api-key)"?\s*[:=]\s*)("[^"]*"|[^\r\n,}]+)/gi,
          "$1[secret]",
        )
    );
  };
}

/** The secrets that lie in a state directory: a newer secret16, and the opened keys of the vault. */
export function secretsOf(stateDir: string): readonly string[] {
  const { secret16 } = Object(readJson(join(stateDir, "secret16.json"))) as { secret16?: unknown };
  const { keys } = Object(readJson(join(stateDir, "vault/keys.json"))) as { keys?: unknown };
  const opened = Array.isArray(keys)
    ? keys.map((one: unknown) => (Object(one) as { key?: unknown }).key)
    : [];
  return [secret16, ...opened].filter((one) => typeof one === "string");
}

function readJson(path: string): unknown {
  try {
    return parseJson(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}
