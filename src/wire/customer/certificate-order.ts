// `/certificate-orders/`: certificates that central orders because a devlove says so (`tls.acme`), and how each order stands.

import { Type, type Static } from "typebox";
import { Sha256Text, Timestamp } from "../parts.ts";
import { Id, open, shape } from "./shape.ts";

const names = ["shop.example.com", "www.example.com"];
const fingerprint = "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4";

export const CertificateOrder = open(
  {
    id: Id,
    domain: Type.String({ description: "The main domain whose devlove orders it." }),
    names: Type.Array(Type.String(), { description: "What the certificate is to name." }),
    directory: Type.String(),
    email: Type.String(),
    state: Type.Union(
      [
        Type.Literal("issued"),
        Type.Literal("ordering"),
        Type.Literal("proving"),
        Type.Literal("failed"),
      ],
      {
        description:
          "`issued`: the certificate is there. `ordering`: central and the directory are at it, or will be at `next_at`: when a directory that has not finished is asked again, or once no more hosts are added for five minutes. `proving`: agents answer for the hosts, and central looks whether they do as the directory will. `failed`: the directory refused, could not be reached, limits, or forgot the order, or hosts were left out; `error` says why, and `next_at` when it is tried again; a certificate that is there stays in force.",
      },
    ),
    attempts: Type.Integer({
      minimum: 0,
      description:
        "How often it failed since the last certificate; a look of central's own at hosts that do not answer counts.",
    }),
    error: Type.Union([Type.String(), Type.Null()], {
      description:
        "What the last failure was, or whom the order waits for; null if there is nothing to tell.",
    }),
    left_out: Type.Array(Type.Object({ host: Type.String(), reason: Type.String() }), {
      description: "Hosts that the certificate does not name because they held up the others.",
    }),
    next_at: Timestamp,
    certificate: Type.Union(
      [
        open({
          names: Type.Array(Type.String()),
          not_before: Timestamp,
          not_after: Timestamp,
          fingerprint: Sha256Text,
          renew_at: Timestamp,
          when_issued: Timestamp,
        }),
        Type.Null(),
      ],
      { description: "The certificate that was issued last; null before the first." },
    ),
  },
  {
    title: "CertificateOrder",
    examples: [
      {
        id: 3,
        domain: "www.example.com",
        names,
        directory: "https://acme.example.com/directory",
        email: "certificates@example.com",
        state: "issued",
        attempts: 0,
        error: null,
        left_out: [],
        next_at: "2027-01-26T09:12:00.000Z",
        certificate: {
          names,
          not_before: "2026-11-29T11:00:00.000Z",
          not_after: "2027-02-27T11:00:00.000Z",
          fingerprint,
          renew_at: "2027-01-26T09:12:00.000Z",
          when_issued: "2026-11-29T12:00:04.000Z",
        },
      },
    ],
  },
);
export type CertificateOrder = Static<typeof CertificateOrder>;
export const certificateOrderShape = shape(CertificateOrder);
