// Every refusal of the customer API: a problem document (RFC 9457), `application/problem+json`.

import { Type, type Static } from "typebox";
import { open, shape } from "./shape.ts";

/** What is wrong where: a JSON pointer into the body or the devlove, or the name of a query parameter. */
export const ProblemError = open({
  path: Type.String(),
  message: Type.String(),
  allowed: Type.Optional(Type.Array(Type.String())),
  did_you_mean: Type.Optional(Type.String()),
  /** Of a clear pattern: how it was given, and how many of its characters (code points) stand before what is wrong. */
  pattern: Type.Optional(Type.String()),
  position: Type.Optional(Type.Integer()),
});
export type ProblemError = Static<typeof ProblemError>;

export const Problem = open({
  type: Type.String(),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String(),
  errors: Type.Optional(Type.Array(ProblemError)),
  /** Of a 500: the id under which the log tells what happened. */
  request_id: Type.Optional(Type.String()),
});
export type Problem = Static<typeof Problem>;
export const problemShape = shape(Problem);
