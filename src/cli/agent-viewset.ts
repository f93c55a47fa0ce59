// `accel-agent viewset`: the versions that this host keeps of its domains, going back to one of them, and trying again what central wants.

import { AccelError } from "../core/faults.ts";
import { readArgs, type Command } from "../base/command.ts";
import { ask, controlOptions, controlUsage, socketPath } from "./control.ts";
import { releasesText, type ReleaseFacts } from "./release-text.ts";

const verbs = ["list", "rollback", "retry"] as const;

export const viewsetCommand: Command = {
  summary:
    "Lists the versions that this host keeps: in force, pinned, on trial, quarantined and why. Goes back to one of them (a pin, told to central), or tries again what central wants.",
  usage: [
    "accel-agent viewset list [DOMAIN]",
    "accel-agent viewset rollback DOMAIN [VERSION]",
    "accel-agent viewset retry DOMAIN",
    "",
    "  VERSION           name, id, or beginning of the manifest's digest (8 characters and more) of a kept version;",
    "                    without it: the version before",
    controlUsage,
    "",
    "rollback pins the host to that version until central activates another one, or until retry.",
    "retry serves what central wants: it lifts a pin, and tries again a version that failed here.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, controlOptions, 3);
    const [verb, domain, version] = positionals;
    if (!verbs.some((one) => one === verb))
      throw new AccelError("USAGE", `viewset ${verb ?? ""}: one of ${verbs.join(", ")}`);
    if (verb !== "list" && domain === undefined)
      throw new AccelError("USAGE", `viewset ${verb} takes a domain`);
    if (verb !== "rollback" && version !== undefined)
      throw new AccelError("USAGE", `viewset ${verb} takes no version`);
    const answer = await ask(
      socketPath("accel-agent", values),
      `viewset-${verb}`,
      { domain, version },
      context,
    );
    if (values.json === true) return context.out(`${JSON.stringify(answer, null, 2)}\n`);
    // The shape is what agent/releases.ts makes.
    const facts = answer as ReleaseFacts | readonly ReleaseFacts[];
    context.out(releasesText(Array.isArray(facts) ? facts : [facts as ReleaseFacts]));
  },
};
