// `accel-agent viewset`: the versions that this host keeps of its domains, going back to one of them, and trying again what central wants.

import { AccelError } from "../core/faults.ts";
import { readArgs, type Command } from "../base/command.ts";
import { ask, controlOptions, controlUsage, renderFacts, socketPath } from "./control.ts";
import { releasesText, type ReleaseFacts } from "./release-text.ts";

const verbs = ["list", "rollback", "retry", "check"] as const;

export const viewsetCommand: Command = {
  summary:
    "Lists the versions that this host keeps: in force, pinned, on trial, quarantined and why. Goes back to one of them (a pin, told to central), tries again what central wants, or checks their files.",
  usage: [
    "accel-agent viewset list [DOMAIN]",
    "accel-agent viewset rollback DOMAIN [VERSION]",
    "accel-agent viewset retry DOMAIN",
    "accel-agent viewset check",
    "",
    "  VERSION           name, id, or beginning of the manifest's digest (8 characters and more) of a kept version;",
    "                    without it: the version before",
    controlUsage,
    "",
    "rollback pins the host to that version until central activates another one, or until retry.",
    "retry serves what central wants: it lifts a pin, and tries again a version that failed here.",
    "check begins a scrub of all files of all versions, and of the cache, unless one is under way; it reads slowly, and `accel-agent status` tells",
    "where it stands.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, controlOptions, 3);
    const [verb, domain, version] = positionals;
    if (!verbs.some((one) => one === verb))
      throw new AccelError("USAGE", `viewset ${verb ?? ""}: one of ${verbs.join(", ")}`);
    if (verb === "check" && domain !== undefined)
      throw new AccelError("USAGE", "viewset check takes no domain: it looks at all of them");
    if (verb !== "list" && verb !== "check" && domain === undefined)
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
    if (verb === "check") return context.out(renderFacts(answer));
    // The shape is what agent/releases.ts makes.
    const facts = answer as ReleaseFacts | readonly ReleaseFacts[];
    context.out(releasesText(Array.isArray(facts) ? facts : [facts as ReleaseFacts]));
  },
};
