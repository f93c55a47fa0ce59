// `POST /trial/`: makes a customer with its first user and token, without credentials; limited by address and
// in total.

import { makes } from "../../wire/customer/operation.ts";
import { createHash } from "node:crypto";
import { trialStart, type Trial, trialShape } from "../../wire/customer/user.ts";
import { createAddressLimit } from "./http/address-limit.ts";
import { conflict, created, isGood, tooMany } from "./http/answer.ts";
import { forAnyone, type Endpoint } from "./http/endpoint.ts";
import type { ResourceDeps } from "./deps.ts";
import { startTrial } from "../store/people/users.ts";

const hourS = 3_600;
const addressesMax = 20_000; // Some 4 MB of buckets.
const tokenBytes = 32;

export function trialEndpoints({
  rateLimit,
  randomBytes,
  settings,
}: ResourceDeps): readonly Endpoint[] {
  const { trialsPerAddress, trialsTotal } = settings;
  const perAddress = createAddressLimit(rateLimit, {
    burst: trialsPerAddress,
    perSecond: trialsPerAddress / hourS,
    keysMax: addressesMax,
  });
  const total = rateLimit({ burst: trialsTotal, perSecond: trialsTotal / hourS, keysMax: 1 });
  return [
    forAnyone({
      method: "POST",
      path: "/trial/",
      id: "startTrial",
      summary: "Start a trial: a user with a token",
      gives: makes(trialShape),
      refuses: [429],
      body: trialStart,
      handle: async ({ body, clientAddress, change }) => {
        const waitMs = perAddress.take(clientAddress) || total.take("");
        if (waitMs > 0) return tooMany("too many trials were started", waitMs);
        const { username, email = "" } = body;
        const token = Buffer.from(randomBytes(tokenBytes)).toString("base64url");
        const answer = await change(async (work) => {
          const tokenDigest = createHash("sha256").update(token).digest("hex");
          const trial = await startTrial(work, { username, email, tokenDigest });
          if (trial === undefined) return conflict(`the username ${username} is in use`);
          const { userId, customerId } = trial;
          return created({
            token,
            username,
            user_id: userId,
            customer_id: customerId,
          } satisfies Trial);
        });
        // The total only counts trials that were made, so that nobody uses it up with names that are in use.
        if (!isGood(answer)) total.give("");
        return answer;
      },
    }),
  ];
}
