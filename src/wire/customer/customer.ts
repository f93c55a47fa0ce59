// `/customer/`: who owns sites and domains.

import { Type, type Static } from "typebox";
import { body, Id, nameText, open, shape } from "./shape.ts";

export const Customer = open(
  { id: Id, name: Type.String() },
  { title: "Customer", examples: [{ id: 3, name: "Example Ltd" }] },
);
export type Customer = Static<typeof Customer>;
export const customerShape = shape(Customer);

export const customerUpdate = body({ name: nameText(255) }, ["id"], {
  examples: [{ name: "Example Ltd" }],
});
