// What a central at a store of several says to whoever asks it: which one answers, and whether it works on the store now.
//
//   GET /agent-api/v1/central   without credentials, at a central's own address or at that of all
//
// A central that has no way to the store asks the others by it, for the bus goes through the store as well.

import { Type, type Static } from "typebox";
import { centralIdForm } from "./bus-message.ts";
import { closed, decoder } from "./validate.ts";

export const CentralTold = closed({
  central: Type.String({ pattern: centralIdForm.source }),
  /** Whether its beat was written within the last seconds. */
  works: Type.Boolean(),
});
export type CentralTold = Static<typeof CentralTold>;
export const decodeCentralTold = decoder(CentralTold);
