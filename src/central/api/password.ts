// Passwords at rest: scrypt (RFC 7914), written as `$scrypt$ln=<log2 N>,r=<r>,p=<p>$<salt>$<hash>` in base64 without padding.

import { scrypt } from "node:crypto";

/** 32 MiB and some 60 ms for each: OWASP's second choice of parameters. */
const cost = { ln: 15, r: 8, p: 3 };
const saltBytes = 16;
const hashBytes = 32;

export async function hashPassword(
  password: string,
  randomBytes: (count: number) => Uint8Array,
): Promise<string> {
  const salt = Buffer.from(randomBytes(saltBytes));
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const options = { N: 2 ** cost.ln, r: cost.r, p: cost.p, maxmem: 2 ** 26 };
  scrypt(password.normalize("NFKC"), salt, hashBytes, options, (error, hash) =>
    error === null ? resolve(hash) : reject(error),
  );
  const text = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "");
  return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${text(salt)}$${text(await promise)}`;
}
