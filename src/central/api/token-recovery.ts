// `POST /tokens/start-recovery/`: asks for a mail with a link to a new token. The answer and its time are the same whether there is such a user or not:
// the request is written down and looked at later.

import { gives } from "../../wire/customer/operation.ts";
import {
  recoveryStart,
  recoveryStartedShape,
  type RecoveryStarted,
} from "../../wire/customer/notifications.ts";
import { addressGroup } from "../../core/address-group.ts";
import { ok, tooMany } from "./answer.ts";
import { forAnyone, type Endpoint } from "./endpoint.ts";
import type { ResourceDeps } from "./resources.ts";

const hourS = 3_600;
const keysMax = 20_000; // Some 4 MB of buckets.
/** Of all addresses together, an hour: each is a row and perhaps a mail. */
const totalMax = 5_000;

export function recoveryEndpoints({ rateLimit, settings }: ResourceDeps): readonly Endpoint[] {
  const burst = settings.recoveriesPerAddress;
  const perAddress = rateLimit({ burst, perSecond: burst / hourS, keysMax });
  const total = rateLimit({ burst: totalMax, perSecond: totalMax / hourS, keysMax: 1 });
  return [
    forAnyone({
      method: "POST",
      path: "/tokens/start-recovery/",
      summary: "Ask for a mail with a link to a new token",
      gives: gives(recoveryStartedShape),
      refuses: [429],
      body: recoveryStart,
      handle: async ({ body, clientAddress, change }) => {
        const waitMs = perAddress.take(addressGroup(clientAddress)) || total.take("");
        if (waitMs > 0) return tooMany("too many recoveries were started", waitMs);
        return change(async (unit) => {
          await unit.recovery.request(body.username, body.email);
          return ok({ status: "email sent" } satisfies RecoveryStarted);
        });
      },
    }),
  ];
}
