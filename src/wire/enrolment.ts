// How a host joins a deployment site with a code, before it has a secret.
//
//   GET  /agent-api/v1/ca      → {ca_pem}: the authority that hosts need to trust for central; 404 where it is a public one
//   POST /agent-api/v1/enrol   {code, nonce} → {name16, secret16, deployment_site_id}
//
// The code that people carry is `enrol1_` and hex: 16 bytes of chance, 16 bytes of the authority's digest (left out where
// hosts trust central without it), 4 bytes by which a mistyped code is told from a wrong one.

import { Type, type Static } from "typebox";
import { sha256Of } from "../core/ids.ts";
import { Name16Text } from "./parts.ts";
import { closed, decoder } from "./validate.ts";

export const codeUsesMax = 100;
export const codeLifetimeDefaultS = 3_600;
export const codeLifetimeMaxS = 7 * 86_400;

/** How long the answer of an exchange is repeated to who repeats its nonce. */
export const repeatedForMs = 600_000;

const prefix = "enrol1_";
const digestChars = 32;
const checkChars = 8;
const Hex128 = Type.String({ pattern: "^[0-9a-f]{32}$" });

export const Enrol = closed({
  /** The bytes of chance alone: the rest of the code is the host's own business. */
  code: Hex128,
  /** The host's own 16 bytes of chance. Who repeats them gets the same answer, and takes no further use. */
  nonce: Hex128,
});
export type Enrol = Static<typeof Enrol>;
export const decodeEnrol = decoder(Enrol);

export const EnrolAnswer = closed({
  name16: Name16Text,
  secret16: Hex128,
  deployment_site_id: Type.Integer({ minimum: 1 }),
});
export type EnrolAnswer = Static<typeof EnrolAnswer>;
export const decodeEnrolAnswer = decoder(EnrolAnswer);

export const AuthorityAnswer = closed({ ca_pem: Type.String({ minLength: 1 }) });
export const decodeAuthorityAnswer = decoder(AuthorityAnswer);

export type ReadCode =
  | {
      readonly ok: true;
      readonly code: string;
      /** Undefined: hosts trust central's certificate as they trust any other. */
      readonly authorityDigest: string | undefined;
    }
  | { readonly ok: false; readonly reason: string };

/** Returns the digest that codes carry: the first half of the SHA-256 of the file, byte by byte. */
export function authorityDigestOf(pem: string): string {
  return sha256Of(pem).slice(0, digestChars);
}

/** Writes a code. `code` is 32 hex characters. */
export function writeCode(code: string, authorityDigest: string | undefined): string {
  const said = `${code}${authorityDigest ?? ""}`;
  return `${prefix}${said}${checkOf(said)}`;
}

/** Reads a code that somebody typed or pasted; blanks around it do not matter. */
export function readCode(text: string): ReadCode {
  const trimmed = text.trim();
  if (trimmed === "") return { ok: false, reason: "the code is empty" };
  if (!trimmed.startsWith(prefix))
    return { ok: false, reason: `the code does not begin with ${prefix}` };
  const hex = trimmed.slice(prefix.length).toLowerCase();
  const said = hex.slice(0, -checkChars);
  const isWhole =
    /^[0-9a-f]+$/.test(hex) && (said.length === digestChars || said.length === 2 * digestChars);
  if (!isWhole || checkOf(said) !== hex.slice(-checkChars))
    return { ok: false, reason: "the code is cut short or mistyped" };
  const authorityDigest = said.slice(digestChars);
  return {
    ok: true,
    code: said.slice(0, digestChars),
    authorityDigest: authorityDigest === "" ? undefined : authorityDigest,
  };
}

function checkOf(said: string): string {
  return sha256Of(`${prefix}${said}`).slice(0, checkChars);
}
