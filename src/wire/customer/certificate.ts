// `/upload/certificates/{deployment_name}/`: certificates of a deployment site. Private keys come in and are in no answer.

import { Type, type Static } from "typebox";
import { Sha256Text, Timestamp } from "../parts.ts";
import { chainCharsMax, privateKeyCharsMax } from "../vault.ts";
import { body, Id, open, shape } from "./shape.ts";

export const certificateUpload = body(
  {
    certificate: Type.String({
      minLength: 1,
      maxLength: chainCharsMax,
      description:
        "PEM. The certificate of the site comes first, then those that lead from it towards a root.",
    }),
    private_key: Type.String({
      minLength: 1,
      maxLength: privateKeyCharsMax,
      description: "PEM, not encrypted.",
    }),
  },
  [],
  {
    examples: [
      {
        certificate: "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n",
        private_key: "-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n",
      },
    ],
  },
);

const fingerprint = "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4";
const stored = { id: 41, names: ["www.example.com"], not_after: "2027-02-20T12:00:00.000Z" };

export const CertificateStored = open(
  {
    id: Id,
    names: Type.Array(Type.String()),
    not_after: Timestamp,
    fingerprint: Sha256Text,
  },
  { title: "CertificateStored", examples: [{ ...stored, fingerprint }] },
);
export type CertificateStored = Static<typeof CertificateStored>;
export const certificateStoredShape = shape(CertificateStored);

export const Certificate = open(
  {
    id: Id,
    names: Type.Array(Type.String()),
    not_before: Timestamp,
    not_after: Timestamp,
    fingerprint: Sha256Text,
    when_created: Timestamp,
    order_id: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          "The order that it came of (`/certificate-orders/`). Absent if it was uploaded.",
      }),
    ),
    state: Type.Union(
      [
        Type.Literal("applied"),
        Type.Literal("pending"),
        Type.Literal("failed"),
        Type.Literal("absent"),
      ],
      {
        description:
          "Whether the site's agents have its certificates as they are now; `absent` if no agent ever connected.",
      },
    ),
    error: Type.Optional(Type.String()),
  },
  {
    title: "Certificate",
    examples: [
      {
        ...stored,
        not_before: "2026-11-22T12:00:00.000Z",
        fingerprint,
        when_created: "2026-11-22T12:30:00.000Z",
        state: "applied",
      },
    ],
  },
);
export type Certificate = Static<typeof Certificate>;
export const certificateShape = shape(Certificate);
