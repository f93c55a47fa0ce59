// `/events/`: hints that something of the customer changed, as Server-Sent Events (HTML Living Standard, section 9.2).

import { Type, type Static } from "typebox";
import { open, shape } from "./shape.ts";

/** What a hint may be about: which answers of the API may be others now. */
export const changeTopics = [
  "clears",
  "viewsets",
  "bots",
  "fleet",
  "alerts",
  "tokens",
  "sites",
  "domains",
  "certificates",
  "enrolments",
  "channels",
  "subscriptions",
  "customer",
] as const;
export type ChangeTopic = (typeof changeTopics)[number];

const Greeting = open({ username: Type.String() });
const Changed = open({
  topics: Type.Array(Type.String()),
  domain: Type.Optional(Type.String()),
});
const Beat = open({});
export const byeReasons = ["revoked", "expired", "stopping"] as const;
const Bye = open({ reason: Type.String() });

/** The data of each event, by its name. */
export const eventShapes = {
  hello: shape(Greeting),
  changed: shape(Changed),
  beat: shape(Beat),
  bye: shape(Bye),
};

/** An event of the stream as clients read it. */
export type ConsoleEvent =
  | ({ readonly event: "hello" } & Static<typeof Greeting>)
  | ({ readonly event: "changed" } & Static<typeof Changed>)
  | { readonly event: "beat" }
  | ({ readonly event: "bye" } & Static<typeof Bye>);
