// Passwords at rest: argon2id (RFC 9106) if this Node has it, otherwise scrypt (RFC 7914). Each text says how
// it was made, so that both can be verified.
//
//   $argon2id$v=19$m=<KiB>,t=<passes>,p=<lanes>$<salt>$<hash>      base64 without padding
//   $scrypt$ln=<log2 N>,r=<r>,p=<p>$<salt>$<hash>

import * as crypto from "node:crypto";

/** 19 MiB and some 30 ms for each: OWASP's second choice of parameters. */
const argonCost = { memory: 19_456, passes: 2, parallelism: 1 };
/** 32 MiB and some 60 ms, from the same list. */
const scryptCost = { ln: 15, r: 8, p: 3 };
const saltBytes = 16;
const hashBytes = 32;
const scryptMemoryMax = 2 ** 26;

type RandomBytes = (count: number) => Uint8Array;

/** Node has it since 24.7; earlier versions have no such export. */
const hasArgon = "argon2" in crypto;

export async function hashPassword(
  password: string,
  randomBytes: RandomBytes,
  kind: "argon2id" | "scrypt" = hasArgon ? "argon2id" : "scrypt",
): Promise<string> {
  const salt = Buffer.from(randomBytes(saltBytes));
  if (kind === "scrypt") {
    const { ln, r, p } = scryptCost;
    const hash = await scrypt(password, salt, hashBytes, scryptCost);
    return `$scrypt$ln=${ln},r=${r},p=${p}$${text(salt)}$${text(hash)}`;
  }
  const { memory, passes, parallelism } = argonCost;
  const hash = await argon(password, salt, hashBytes, argonCost);
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${text(salt)}$${text(hash)}`;
}

/**
 * Verifies a password in constant time. A hash must have all its bytes, because the beginning of a scrypt
 * hash is a hash too. Returns false also for a text of another kind, and for argon2id if this Node lacks it.
 */
export async function verifyPassword(password: string, stored: string): Promise<boolean> {
  const form =
    /^\$(?:argon2id\$v=19\$m=(?<m>\d{1,7}),t=(?<t>\d{1,3}),p=(?<lanes>\d{1,2})|scrypt\$ln=(?<ln>\d{1,2}),r=(?<r>\d{1,2}),p=(?<p>\d{1,2}))\$(?<salt>[\w+/]+)\$(?<hash>[\w+/]{43})$/;
  const found = form.exec(stored)?.groups;
  if (found === undefined) return false;
  const number = (name: string): number => Number(found[name]);
  const salt = Buffer.from(found["salt"] ?? "", "base64");
  const wanted = Buffer.from(found["hash"] ?? "", "base64");
  if (found["m"] === undefined) {
    const cost = { ln: number("ln"), r: number("r"), p: number("p") };
    return crypto.timingSafeEqual(await scrypt(password, salt, wanted.length, cost), wanted);
  }
  if (!hasArgon) return false;
  const cost = { memory: number("m"), passes: number("t"), parallelism: number("lanes") };
  return crypto.timingSafeEqual(await argon(password, salt, wanted.length, cost), wanted);
}

async function argon(
  password: string,
  salt: Buffer,
  tagLength: number,
  cost: typeof argonCost,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const message = Buffer.from(password.normalize("NFKC"));
  crypto.argon2("argon2id", { message, nonce: salt, tagLength, ...cost }, (error, hash) =>
    error === null ? resolve(hash) : reject(error),
  );
  return promise;
}

async function scrypt(
  password: string,
  salt: Buffer,
  length: number,
  { ln, r, p }: typeof scryptCost,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const options = { N: 2 ** ln, r, p, maxmem: scryptMemoryMax };
  crypto.scrypt(password.normalize("NFKC"), salt, length, options, (error, hash) =>
    error === null ? resolve(hash) : reject(error),
  );
  return promise;
}

function text(bytes: Buffer): string {
  return bytes.toString("base64").replace(/=+$/, "");
}
