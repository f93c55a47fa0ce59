// Checks whether this host can make pictures smaller, by starting the encoder once.

import type { AgentSettings } from "../settings/fields.ts";
import { findingsOf, type Finding, type Host } from "./finding.ts";

const { ok, warning, skipped } = findingsOf("images");

const install =
  "The Debian package has sharp. Beside the npm package: npm install sharp, for the processor and the C library of this host. To do without it, set images.encoder: false.";

export async function checkImages(settings: AgentSettings, host: Host): Promise<Finding> {
  if (!settings["images.encoder"])
    return skipped("images.encoder is false: every original is sent as it is");
  const seen = await host.encoder(settings);
  switch (seen.kind) {
    case "opened": {
      const libraries = Object.entries(seen.versions).map(
        ([name, version]) => `${name} ${version}`,
      );
      return ok(`pictures can be made smaller: ${libraries.join(", ")}`);
    }
    case "absent": {
      const agent = await host.agent();
      return agent.kind === "answers" && agent.isEncoderMissed
        ? warning(
            `a devlove in force has images.optimize, and ${seen.reason}: visitors get the originals`,
            install,
          )
        : skipped(
            `${seen.reason}: this host can make no pictures smaller, which only images.optimize of a devlove asks for. ${install}`,
          );
    }
    case "failed":
      return warning(
        `the encoder of pictures does not start: ${seen.reason}`,
        "It starts at idle priority: where other processes take all the time, ask again later. images.memory_max may be too little for it.",
      );
    default:
      return seen satisfies never;
  }
}
