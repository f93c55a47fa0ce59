// Every refusal of the customer API is a problem document (RFC 9457), `application/problem+json`.

import { Type, type Static } from "typebox";
import { open, shape } from "./shape.ts";

/** One fault and its place: a JSON pointer into the body or the devlove, or the name of a query parameter. */
export const ProblemError = open(
  {
    path: Type.String({
      description:
        "A JSON pointer into the body or the devlove, or the name of a parameter; names of query parameters begin with ?.",
    }),
    message: Type.String(),
    allowed: Type.Optional(Type.Array(Type.String())),
    did_you_mean: Type.Optional(Type.String()),
    pattern: Type.Optional(
      Type.String({ description: "For a clear pattern: the pattern as it was given." }),
    ),
    position: Type.Optional(
      Type.Integer({ description: "How many characters of the pattern come before the fault." }),
    ),
  },
  { title: "ProblemError" },
);
export type ProblemError = Static<typeof ProblemError>;

export const Problem = open(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    errors: Type.Optional(Type.Array(ProblemError)),
    request_id: Type.Optional(
      Type.String({ description: "For a 500: the id under which the log says what happened." }),
    ),
  },
  {
    title: "Problem",
    description: "A problem document (RFC 9457).",
    examples: [
      {
        type: "about:blank",
        title: "Bad Request",
        status: 400,
        detail: "the request is not valid: /tagz: unknown field; did you mean tags?",
        errors: [{ path: "/tagz", message: "unknown field; did you mean tags?" }],
      },
    ],
  },
);
export type Problem = Static<typeof Problem>;
export const problemShape = shape(Problem);
