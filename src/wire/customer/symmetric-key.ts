// `/symenckeys/`: which symmetric keys there are and which site has each. The keys themselves are in no answer.

import { Type, type Static } from "typebox";
import { body, Id, open, shape } from "./shape.ts";

export const SymmetricKey = open(
  {
    id: Id,
    name: Type.String(),
    deployment_site_id: Id,
    state: Type.Union(
      [
        Type.Literal("applied"),
        Type.Literal("pending"),
        Type.Literal("failed"),
        Type.Literal("absent"),
      ],
      {
        description:
          "Whether the site's agents have its keys as they are now; `absent` if no agent ever connected.",
      },
    ),
    error: Type.Optional(Type.String()),
  },
  {
    title: "SymmetricEncryptionKey",
    description: "The name of the key and its deployment site. The key itself is in no answer.",
    examples: [{ id: 21, name: "key-5f0c9a7be3d21846-1", deployment_site_id: 7, state: "applied" }],
  },
);
export type SymmetricKey = Static<typeof SymmetricKey>;
export const symmetricKeyShape = shape(SymmetricKey);

export const symmetricKeyWrite = body(
  { deployment_site_id: Id },
  ["id", "name", "state", "error"],
  { examples: [{ deployment_site_id: 7 }] },
);
