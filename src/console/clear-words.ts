// A clear in a few words: what it named, and how far its proof is.

import type { ClearRecord, ClearState } from "../wire/customer/clear.ts";
import type { Tone } from "./parts/pieces.tsx";

type Named = Pick<
  ClearRecord,
  "patterns" | "urls" | "prefixes" | "tags" | "hosts" | "everything" | "soft"
>;

export function clearWords(clear: Named): string {
  const parts = [
    ...(clear.everything === true ? ["everything"] : []),
    ...words("", clear.urls),
    ...words("below ", clear.prefixes),
    ...words("tag ", clear.tags),
    ...words("host ", clear.hosts),
    ...words("pattern ", clear.patterns),
  ];
  return `${parts.join(", ")}${clear.soft === true ? " (made stale)" : ""}`;
}

const namedMost = 3;

function words(before: string, texts: readonly string[] = []): readonly string[] {
  const shown = texts.slice(0, namedMost).map((text) => before + text);
  const left = texts.length - shown.length;
  return left > 0 ? [...shown, `${left} more`] : shown;
}

/** What is proved of a clear, over all its deployments. */
export function proofWords({ deployments }: Pick<ClearState, "deployments">): {
  readonly tone: Tone;
  readonly text: string;
} {
  if (deployments.length === 0) return { tone: "warn", text: "no host serves it" };
  const states = deployments.flatMap(({ state, instances }) =>
    instances.length === 0 ? [state] : instances.map((one) => one.state),
  );
  const proved = states.filter((state) => state === "applied").length;
  if (states.includes("failed")) return { tone: "bad", text: "failed on a host" };
  return proved === states.length
    ? { tone: "good", text: `proved by ${proved} of ${states.length}` }
    : { tone: "warn", text: `proved by ${proved} of ${states.length}` };
}
