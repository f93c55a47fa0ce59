// `/symenckeys/`: which symmetric keys there are and which site has each. The keys themselves are in no answer.

import { Type, type Static } from "typebox";
import { body, Id, open, shape } from "./shape.ts";

export const SymmetricKey = open({
  id: Id,
  name: Type.String(),
  deployment_site_id: Id,
  /** Whether the site's agents have its keys as they are now. */
  state: Type.Union([Type.Literal("applied"), Type.Literal("pending"), Type.Literal("failed")]),
  error: Type.Optional(Type.String()),
});
export type SymmetricKey = Static<typeof SymmetricKey>;
export const symmetricKeyShape = shape(SymmetricKey);

export const symmetricKeyWrite = body({ deployment_site_id: Id }, ["id", "name", "state", "error"]);
