// `/events/`: a stream of hints that something of the customer changed.

import { givesMedia } from "../../wire/customer/operation.ts";
import type { ResourceDeps } from "./deps.ts";
import type { StreamBegun } from "./event-streams.ts";
import { problem, tooMany, type ProblemAnswer } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";

const eventStream = "text/event-stream";
const retryAfterMs = 10_000;

export function eventEndpoints({ ports }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/events/",
      id: "listEvents",
      needs: { role: "read", scope: "domain" },
      summary: "Listen to hints that something of the customer changed, as Server-Sent Events",
      gives: givesMedia(eventStream),
      refuses: [503],
      handle: async ({ actor }) => ({
        kind: "events",
        status: 200,
        // Proxies that gather an answer before they pass it on would hold hints back.
        headers: { "content-type": eventStream, "x-accel-buffering": "no" },
        begin: (sink) => {
          const begun = ports.events.begin(actor, sink);
          return begun.ok ? begun : refusal(begun.why);
        },
      }),
    }),
  ];
}

function refusal(why: Extract<StreamBegun, { ok: false }>["why"]): ProblemAnswer {
  if (why === "token")
    return tooMany("this token has as many streams as it may have", retryAfterMs);
  const detail = why === "all" ? "there are too many streams" : "central stops or begins anew";
  return problem(503, detail, { headers: { "retry-after": String(retryAfterMs / 1_000) } });
}
