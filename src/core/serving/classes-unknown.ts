// What is said of hosts whose release knows no policies for classes of bots: in the warning of central, beside each of these
// hosts, and in the list of all warnings.

const alone = "unknown_bots_can_access alone";
const knowsNone = "knows no policies for classes of bots";
const update = "Update accel-agent";

export const classesUnknown = {
  code: "bot_classes_unknown",
  severity: "warning",
  means: `A host runs a release that ${knowsNone}. It goes by \`unknown_bots_can_access\` alone, also where a policy says another thing of feed readers, libraries or crawlers.`,
  todo: `${update} on the host. Central tells it of classes then, and the warning ends.`,
  /** Beside the host that is meant. */
  ofHost: `goes by ${alone}: its release ${knowsNone}`,
  hint: `${update} there.`,
} as const;

/** Says it of several hosts, the names of the first of them in a list. */
export function classesUnknownText(hosts: number, names: string): string {
  const [go, its] = hosts === 1 ? ["1 host goes", "its"] : [`${hosts} hosts go`, "their"];
  return `${go} by ${alone}: ${its} release ${knowsNone} (${names})`;
}
