// `accel-central images`: how many variants of a domain's images were made and held back, by day, through the customer API.

import { readArgs, type Command } from "../base/command.ts";
import { createCustomerClient } from "../client/customer-client.ts";
import { AccelError } from "../core/faults.ts";
import { apiAccess, apiOptions, apiUsage, toldToCaller } from "./customer-api.ts";
import { textTable } from "./text.ts";

export const imagesCommand: Command = {
  summary:
    "Shows how many variants of a domain's images all its hosts made, and how many they held back, on each day (UTC). Uses the customer API, from any host.",
  usage: [
    "accel-central images DOMAIN [options]",
    "",
    apiUsage,
    "",
    "DOMAIN is a main domain. At least so many as held_back says were not made because their host had tried",
    "images.variants_per_day_max of them; visitors got the originals. A try that comes to nothing smaller counts there, and not as made. The newest day is the last. docs/images.md says what to do about it.",
  ].join("\n"),
  async run({ args, env, out }) {
    const { values, positionals } = readArgs(args, apiOptions, 1);
    const [domain] = positionals;
    if (domain === undefined) throw new AccelError("USAGE", "images takes a domain");
    const access = apiAccess(values, env);
    await using client = createCustomerClient(access);
    try {
      const found = await client.imageVariants(domain);
      out(
        values.json === true
          ? `${JSON.stringify(found, null, 2)}\n`
          : textTable(
              found.days.toReversed(),
              ["day", "made", "held_back"],
              "no variants were made or held back yet",
            ),
      );
    } catch (error) {
      throw toldToCaller(error, access);
    }
  },
};
