// Opens the private keys of certificates, as the workers need them. Reasons never hold what was opened.

import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { openPrivateKey } from "../../base/vault-seal.ts";
import type { InstalledCertificate } from "../../core/serving/certificate-table.ts";
import { codeOf } from "../../core/faults.ts";
import type { CertificateState } from "../../wire/vault.ts";

export type OpenedCertificates =
  | { readonly kind: "opened"; readonly certificates: readonly InstalledCertificate[] }
  /** A symmetric key is missing or does not open with this host's secret16. */
  | { readonly kind: "locked"; readonly reason: string }
  | { readonly kind: "invalid"; readonly reason: string };

export type Opening = {
  /** The open keys by name. */
  readonly keys: ReadonlyMap<string, Uint8Array>;
  readonly name16: string;
  /** Whether to check that chain and key belong together, which is done once, when they arrive. */
  readonly isNew: boolean;
};

/** The number of certificates between two turns of the event loop; new ones take 0.3 ms each. */
const atOnce = 32;

export async function openCertificates(
  states: readonly CertificateState[],
  opening: Opening,
): Promise<OpenedCertificates> {
  const certificates: InstalledCertificate[] = [];
  for (const [at, state] of states.entries()) {
    if (at % atOnce === 0 && at > 0) await setImmediate();
    const one = openOne(state, opening);
    if ("kind" in one) return one;
    certificates.push(one);
  }
  return { kind: "opened", certificates };
}

function openOne(
  state: CertificateState,
  { keys, name16, isNew }: Opening,
): InstalledCertificate | Exclude<OpenedCertificates, { readonly kind: "opened" }> {
  const { names, fingerprint, chain, key_name: keyName } = state;
  const what = `the certificate for ${names[0]} (${fingerprint.slice(0, 16)})`;
  const key = keys.get(keyName);
  if (key === undefined)
    return {
      kind: "locked",
      reason: `${what} is sealed with ${keyName}, which this host cannot open: it is sealed under another secret16`,
    };
  let privateKey: string;
  try {
    privateKey = openPrivateKey(state.sealed_key, key, { name16, fingerprint });
  } catch (error) {
    if (codeOf(error) !== "SEAL_BROKEN") throw error;
    return { kind: "invalid", reason: `${what}: its private key does not open with ${keyName}` };
  }
  const fault = isNew ? faultOf(chain, privateKey, fingerprint) : undefined;
  if (fault !== undefined) return { kind: "invalid", reason: `${what} ${fault}` };
  const [notBeforeMs, notAfterMs] = [Date.parse(state.not_before), Date.parse(state.not_after)];
  return { names, notBeforeMs, notAfterMs, fingerprint, chain, privateKey };
}

/**
 * Returns what is wrong with a certificate. Central has checked it too, but visitors would suffer from any
 * fault, so it is checked again on arrival.
 */
function faultOf(chain: string, privateKey: string, fingerprint: string): string | undefined {
  let leaf: X509Certificate;
  let key: KeyObject;
  try {
    leaf = new X509Certificate(chain);
  } catch {
    return "cannot be read";
  }
  if (leaf.fingerprint256.replaceAll(":", "").toLowerCase() !== fingerprint)
    return "does not match its fingerprint";
  try {
    key = createPrivateKey(privateKey);
  } catch {
    return "has a private key that cannot be read";
  }
  return leaf.checkPrivateKey(key) ? undefined : "has the private key of another certificate";
}
