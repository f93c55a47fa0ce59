// `POST /tokens/start-recovery/`: asks for a mail with a link to a new token. The answer and its time are the
// same whether there is such a user or not: the request is written down and looked at later.

import { gives } from "../../wire/customer/operation.ts";
import {
  recoveryStart,
  recoveryStartedShape,
  type RecoveryStarted,
} from "../../wire/customer/notifications.ts";
import { createAddressLimit } from "./http/address-limit.ts";
import { ok, problem, tooMany } from "./http/answer.ts";
import { forAnyone, type Endpoint } from "./http/endpoint.ts";
import type { ResourceDeps } from "./deps.ts";
import { requestRecovery } from "../store/people/recovery.ts";

const hourS = 3_600;
const keysMax = 20_000; // Some 4 MB of buckets.
/** The most requests that wait to be looked at, which takes a millisecond each. */
const waitingMax = 5_000;
const waitMs = 5_000;

export function recoveryEndpoints({ rateLimit, settings }: ResourceDeps): readonly Endpoint[] {
  const burst = settings.recoveriesPerAddress;
  const perAddress = createAddressLimit(rateLimit, { burst, perSecond: burst / hourS, keysMax });
  return [
    forAnyone({
      method: "POST",
      path: "/tokens/start-recovery/",
      id: "startTokenRecovery",
      summary: "Ask for a mail with a link to a new token",
      gives: gives(recoveryStartedShape),
      refuses: [429, 503],
      body: recoveryStart,
      handle: async ({ body, clientAddress, change }) => {
        const addressWaitMs = perAddress.take(clientAddress);
        if (addressWaitMs > 0) return tooMany("too many recoveries were started", addressWaitMs);
        if (!settings.sendsMail)
          return problem(
            503,
            "this central sends no mail, for its operator has set no mail server: ask the operator for a new token or password",
            { headers: { "retry-after": String(hourS) } },
          );
        return change(async (work) => {
          const outcome = await requestRecovery(work, body, waitingMax);
          if (outcome === "too-many") return tooMany("too many recoveries are waiting", waitMs);
          return ok({ status: "email sent" } satisfies RecoveryStarted);
        });
      },
    }),
  ];
}
