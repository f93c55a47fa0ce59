// `/deployment-site/{id}/enrolment/`: codes with which hosts join a deployment site.

import { Type, type Static } from "typebox";
import { codeLifetimeDefaultS, codeLifetimeMaxS, codeUsesMax } from "../enrolment.ts";
import { body, Id, open, shape } from "./shape.ts";

const fields = {
  id: Id,
  deployment_site_id: Id,
  state: Type.Union(
    [Type.Literal("open"), Type.Literal("used"), Type.Literal("expired"), Type.Literal("revoked")],
    { description: "Whether a host can still join with it; `used` if all its uses are taken." },
  ),
  uses: Type.Integer({ minimum: 1, maximum: codeUsesMax }),
  used: Type.Integer({
    minimum: 0,
    description:
      "How many hosts have exchanged it for name and secret of the site. A host whose join fails behind that gives the same code again within ten minutes, and takes no other use.",
  }),
  when_last_used: Type.Union([Type.String(), Type.Null()], {
    description: "When a host exchanged it last; null: none has.",
  }),
  last_used_from: Type.Union([Type.String(), Type.Null()], {
    description: "The address from which that host came.",
  }),
  created_by: Type.String({
    description: "The user, or `operator` and the account on central's host.",
  }),
  when_created: Type.String(),
  when_expires: Type.String(),
};

const example = {
  id: 12,
  deployment_site_id: 7,
  state: "open",
  uses: 1,
  used: 0,
  when_last_used: null,
  last_used_from: null,
  created_by: "anna",
  when_created: "2026-11-27T08:00:00.000Z",
  when_expires: "2026-11-27T09:00:00.000Z",
};

export const Enrolment = open(fields, {
  title: "Enrolment",
  description: "A code for `accel-agent join`. The code itself is in no answer but the first.",
  examples: [example],
});
export type Enrolment = Static<typeof Enrolment>;
export const enrolmentShape = shape(Enrolment);

export const EnrolmentMade = open(
  {
    ...fields,
    code: Type.String({ description: "Give it to `accel-agent join`. It is shown only here." }),
  },
  {
    title: "EnrolmentMade",
    description: "A new code for `accel-agent join`.",
    examples: [{ ...example, code: "enrol1_00112233445566778899aabbccddeeff6e3ac1b1" }],
  },
);
export type EnrolmentMade = Static<typeof EnrolmentMade>;
export const enrolmentMadeShape = shape(EnrolmentMade);

export const enrolmentFields = {
  uses: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: codeUsesMax,
      default: 1,
      description: "How many hosts may join with the code.",
    }),
  ),
  lifetime_seconds: Type.Optional(
    Type.Integer({
      minimum: 60,
      maximum: codeLifetimeMaxS,
      default: codeLifetimeDefaultS,
      description: "How long the code can be used.",
    }),
  ),
};

export const enrolmentCreate = body(enrolmentFields, [], {
  examples: [{ uses: 3, lifetime_seconds: 86_400 }],
});
