// Checks whether the agent itself answers: one that hangs is listed as running by systemd, and serves nobody.

import {
  findingsOf,
  unseen,
  type AgentSeen,
  type Finding,
  type Host,
  type LinkSeen,
} from "./finding.ts";

export async function checkAgent(host: Pick<Host, "agent" | "place">): Promise<Finding> {
  const { ok, failed, warning, skipped } = findingsOf("agent");
  const seen = await host.agent();
  switch (seen.kind) {
    case "absent":
      return skipped("it does not run");
    case "denied":
      return unseen("agent", "this user may not ask it");
    case "hangs":
      return failed(
        seen.reason,
        `systemd's watchdog ends it within a minute and starts it again: journalctl -u ${host.place.unit.replace(/\.service$/, "")} says so. Ask again then.`,
      );
    case "answers": {
      if (!seen.isReady)
        return warning(
          "it answers, and does not serve yet",
          "`accel-agent status` says what it waits for.",
        );
      if (seen.warnsOf.length === 0) return ok("it serves, and warns of nothing");
      return warning(
        `it serves, and warns of ${seen.warnsOf.join(", ")}`,
        "`accel-agent status` says what is concerned and what to do.",
      );
    }
    default:
      return seen satisfies never;
  }
}

/** Reads the agent's answer to `status`. */
export function agentSeen(status: unknown): AgentSeen {
  const { ready, parts, warnings } = Object(status) as Readonly<Record<string, unknown>>;
  const { link, images } = Object(parts) as Readonly<Record<string, unknown>>;
  const { encoder } = Object(images) as { readonly encoder?: unknown };
  const codes = (Array.isArray(warnings) ? warnings : []).flatMap((one: unknown) => {
    const { code, severity } = Object(one) as Readonly<Record<string, unknown>>;
    return typeof code === "string" && severity !== "info" ? [code] : [];
  });
  return {
    kind: "answers",
    isReady: ready === true,
    warnsOf: [...new Set(codes)],
    link: linkOf(link),
    isEncoderMissed: encoder === "absent",
  };
}

function linkOf(link: unknown): LinkSeen | undefined {
  const { state, last_error: last } = Object(link) as Readonly<Record<string, unknown>>;
  if (typeof state !== "string") return undefined;
  const { message } = Object(last) as { readonly message?: unknown };
  const isAway = state === "disconnected" && typeof message === "string";
  return { state, error: isAway ? message : undefined };
}
