// Which answers of the API may be others after a change: by the operation that made it, and by the kind of an entry that agents proved.

import type { ChangeTopic } from "../../wire/customer/events.ts";
import type { Endpoint } from "./http/endpoint.ts";

/** By the first fixed part of an operation's path. */
const byWord: Readonly<Record<string, readonly ChangeTopic[]>> = {
  "active-viewset": ["viewsets"],
  "bot-access-policy": ["bots"],
  bots: ["bots"],
  "certificate-orders": ["certificates"],
  "clear-accelerator-cache": ["clears"],
  customer: ["customer"],
  "deployment-site": ["sites", "fleet"],
  devlove: ["viewsets"],
  domain: ["domains", "fleet"],
  enrolment: ["enrolments"],
  "import-viewset": ["viewsets"],
  "mark-as-bad-bot": ["bots"],
  "mark-as-vip-bot": ["bots"],
  "monitor-notification-channel": ["channels"],
  notifications: ["subscriptions"],
  "remove-ip-from-bad-bot-list": ["bots"],
  "remove-ip-from-vip-bot-list": ["bots"],
  session: ["tokens"],
  symenckeys: ["certificates"],
  tokens: ["tokens"],
  upload: ["certificates"],
  "user-profile": ["customer", "tokens"],
};

/** Returns the topics of an operation that changes something of a customer; none for one that does not. */
export function topicsOf({
  auth,
  method,
  path,
}: Pick<Endpoint, "auth" | "method" | "path">): readonly ChangeTopic[] {
  if (method === "GET" || auth === "basic" || auth === "none") return [];
  if (path.includes("/enrolment/")) return byWord["enrolment"] ?? [];
  const word = path.split("/").find((part) => part !== "" && !part.startsWith(":")) ?? "";
  return byWord[word] ?? [];
}

/** Returns what may be other when agents proved an entry of such a kind. */
export function topicsOfKind(kind: string): readonly ChangeTopic[] {
  const [subject = ""] = kind.split(".", 1);
  const topics: Readonly<Record<string, readonly ChangeTopic[]>> = {
    cache: ["clears", "fleet"],
    viewset: ["viewsets", "fleet"],
    bots: ["bots", "fleet"],
    policy: ["bots", "fleet"],
  };
  return topics[subject] ?? ["fleet"];
}

/** What may be other when it is not known which entries were proved. */
export const anyProved: readonly ChangeTopic[] = ["clears", "viewsets", "bots", "fleet"];

/** What a token for some domains can look at: hints about the rest are not for it. */
export const topicsOfDomains: ReadonlySet<ChangeTopic> = new Set([
  "clears",
  "viewsets",
  "bots",
  "fleet",
  "alerts",
  "domains",
]);
