// Secrets at rest: AES-256-GCM under a key in a file outside the database (NIST SP 800-38D).
//
//   sealed = base64url( 12 bytes nonce | 16 bytes tag | ciphertext ), bound to a context text as additional data

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { AccelError, messageOf, systemCode } from "../core/faults.ts";
import { writeDurable } from "./durable-file.ts";

export type Sealer = {
  /** `context` names row and column, so that a sealed text moved elsewhere does not open. */
  seal(plain: string, context: string): string;
  /** Throws SEAL_BROKEN for a text that was sealed by another key, moved or changed. */
  open(sealed: string, context: string): string;
};

const nonceBytes = 12;
const tagBytes = 16;

/** Seals with `key`, and opens what was sealed with it or with one of `before`. */
export function createSealer(key: Uint8Array, ...before: readonly Uint8Array[]): Sealer {
  return {
    seal: (plain, context) => sealBytes(Buffer.from(plain), key, context),
    open: (sealed, context) => openByAny([key, ...before], sealed, context).toString("utf8"),
  };
}

function openByAny(keys: readonly Uint8Array[], sealed: string, context: string): Buffer {
  const faults: unknown[] = [];
  for (const key of keys)
    try {
      return openBytes(sealed, key, context);
    } catch (error) {
      faults.push(error);
    }
  throw faults[0];
}

export function sealBytes(plain: Uint8Array, key: Uint8Array, context: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString("base64url");
}

/** Throws SEAL_BROKEN for a text that was sealed by another key, moved or changed. */
export function openBytes(sealed: string, key: Uint8Array, context: string): Buffer {
  const bytes = Buffer.from(sealed, "base64url");
  try {
    // Without the length, older versions of Node accept a shortened tag, which is easier to forge.
    const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    })
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
    return Buffer.concat([
      decipher.update(bytes.subarray(nonceBytes + tagBytes)),
      decipher.final(),
    ]);
  } catch (error) {
    throw new AccelError(
      "SEAL_BROKEN",
      `a sealed secret (${context}) does not open with this key`,
      { cause: error },
    );
  }
}

/** Reads the key file, or makes it, mode 0600, when it does not exist; the key that seals. Throws FILE_UNUSABLE. */
export async function openKeyFile(path: string): Promise<Uint8Array> {
  const [key] = await openKeysOfFile(path);
  return key;
}

/**
 * Reads the key file: a line of 64 hex characters. While a store is brought to another key there is a second one, with the key
 * of before. Makes it, mode 0600, when it does not exist. Throws FILE_UNUSABLE.
 */
export async function openKeysOfFile(
  path: string,
): Promise<readonly [Uint8Array, ...Uint8Array[]]> {
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    if (systemCode(error) !== "ENOENT") {
      throw new AccelError(
        "FILE_UNUSABLE",
        `the key file ${path} cannot be read: ${messageOf(error)}`,
      );
    }
    text = newKey();
    await writeDurable(path, `${text}\n`);
  }
  const [key = "", ...before] = text.split(/\s+/);
  if (![key, ...before].every((line) => /^[0-9a-f]{64}$/.test(line)))
    throw new AccelError("FILE_UNUSABLE", `the key file ${path} must hold 64 hex characters`);
  return [Buffer.from(key, "hex"), ...before.map((line) => Buffer.from(line, "hex"))];
}

export function newKey(): string {
  return randomBytes(32).toString("hex");
}
