// `/{domain}/devlove/…`: the configuration document of a domain, one per viewset version and schema.

import { Type, type Static } from "typebox";
import { ProblemError } from "./problem.ts";
import { body, Id, open, shape } from "./shape.ts";

export const DevloveFile = open({ id: Id, schema: Type.String(), content: Type.String() });
export type DevloveFile = Static<typeof DevloveFile>;
export const devloveFileShape = shape(DevloveFile);

/** The validator bounds the content, so that a document that is too large is told as its own error. */
const fields = { schema: Type.String({ maxLength: 255 }), content: Type.String() };

export const devloveFileWrite = body(fields, ["id"]);
export const devloveValidate = body(fields);

export const DevloveVerdict = open({
  status: Type.Union([Type.Literal("ok"), Type.Literal("error")]),
  payload: open({
    "devlove-valid": Type.Union([Type.Literal("True"), Type.Literal("False")]),
    errors: Type.Optional(Type.Array(ProblemError)),
  }),
});
export type DevloveVerdict = Static<typeof DevloveVerdict>;
export const devloveVerdictShape = shape(DevloveVerdict);
