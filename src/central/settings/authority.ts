// The authority that hosts need to trust for central's address. Whoever joins is given it, and knows it by the digest in its code.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { AccelError, messageOf } from "../../core/faults.ts";
import { authorityDigestOf } from "../../wire/enrolment.ts";

export type Authority = { readonly pem: string; readonly digest: string };

/**
 * Reads the file that `ca_file` names; it is read anew each time, so a renewed one needs no restart. Undefined where no
 * file is named. Throws FILE_UNUSABLE.
 */
export function readAuthority(path: string | undefined): Authority | undefined {
  if (path === undefined) return undefined;
  let pem: string;
  try {
    pem = readFileSync(path, "utf8");
  } catch (error) {
    throw new AccelError("FILE_UNUSABLE", `ca_file cannot be read: ${messageOf(error)}`);
  }
  if (pem.includes("PRIVATE KEY"))
    throw new AccelError(
      "FILE_UNUSABLE",
      `ca_file ${path} holds a private key; it is given to every host that joins`,
    );
  try {
    void new X509Certificate(pem);
  } catch (error) {
    throw new AccelError(
      "FILE_UNUSABLE",
      `ca_file ${path} holds no certificate: ${messageOf(error)}`,
    );
  }
  return { pem, digest: authorityDigestOf(pem) };
}
