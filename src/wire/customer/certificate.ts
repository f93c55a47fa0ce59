// `/upload/certificates/{deployment_name}/`: certificates of a deployment site. Private keys come in and are in no answer.

import { Type, type Static } from "typebox";
import { Sha256Text, Timestamp } from "../parts.ts";
import { chainCharsMax, privateKeyCharsMax } from "../vault.ts";
import { body, Id, open, shape } from "./shape.ts";

export const certificateUpload = body({
  /** PEM, the certificate of the site first, then those that lead from it towards a root. */
  certificate: Type.String({ minLength: 1, maxLength: chainCharsMax }),
  /** PEM, not encrypted. */
  private_key: Type.String({ minLength: 1, maxLength: privateKeyCharsMax }),
});

export const CertificateStored = open({
  id: Id,
  names: Type.Array(Type.String()),
  not_after: Timestamp,
  fingerprint: Sha256Text,
});
export type CertificateStored = Static<typeof CertificateStored>;
export const certificateStoredShape = shape(CertificateStored);

export const Certificate = open({
  id: Id,
  names: Type.Array(Type.String()),
  not_before: Timestamp,
  not_after: Timestamp,
  fingerprint: Sha256Text,
  when_created: Timestamp,
  /** Whether the site's agents have its certificates as they are now. */
  state: Type.Union([Type.Literal("applied"), Type.Literal("pending"), Type.Literal("failed")]),
  error: Type.Optional(Type.String()),
});
export type Certificate = Static<typeof Certificate>;
export const certificateShape = shape(Certificate);
